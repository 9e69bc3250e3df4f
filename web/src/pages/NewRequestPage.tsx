import { Button, Checkbox, Group, Skeleton, Stack, Textarea } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { Link, useNavigate, useSearchParams } from "react-router";
import { asApiError } from "../api/client";
import { useCreateTicket } from "../api/mutations";
import { useApplications, useResource } from "../api/queries";
import { ApplicationSelect, ResourceSelect } from "../components/CatalogSelects";
import { DurationField } from "../components/DurationField";
import type { DurationValue } from "../components/DurationField";
import { ErrorState, Notice } from "../components/Feedback";
import { Page } from "../components/Page";
import { RequestPreview } from "../components/RequestPreview";
import tables from "../components/Tables.module.css";
import { randomKey } from "../lib/names";
import { previewBody, reasonLimit, toBody, validate } from "../lib/request";
import type { RequestErrors, RequestField, RequestForm } from "../lib/request";
import classes from "./NewRequestPage.module.css";

/** The form's values: what the person chose, else what the link brought, else the only possibility. */
function useForm() {
  const [search] = useSearchParams();
  const [chosenApplication, setApplication] = useState(search.get("application") ?? undefined);
  const [resource, setResource] = useState(search.get("resource") ?? "");
  const [chosenActions, setActions] = useState<string[]>();
  const [duration, setDuration] = useState<DurationValue>({ duration: "30", customAmount: 12, customUnit: "hours" });
  const [reason, setReason] = useState("");

  const mine = useApplications({ mine: true, limit: 200 }).data?.pages.flatMap((page) => page.items);
  const only = mine?.length === 1 ? mine[0]?.id : undefined;
  const resourceQuery = useResource(resource);
  const offered = resourceQuery.data?.actions.map((action) => action.name) ?? [];
  const linked = search.get("action");
  const byDefault = linked !== null && offered.includes(linked) ? [linked] : offered.length === 1 ? offered : [];

  const form: RequestForm = {
    application: chosenApplication ?? only ?? "",
    resource,
    actions: (chosenActions ?? byDefault).filter((action) => offered.includes(action)),
    ...duration,
    reason,
  };
  return {
    form,
    resourceQuery,
    setApplication,
    setResource: (id: string) => {
      setResource(id);
      setActions(undefined);
    },
    setActions,
    setDuration,
    setReason,
  };
}

/** The same content keeps its key, so that a retry after a lost answer does not ask twice. */
function useIdempotencyKey() {
  const last = useRef<{ content: string; key: string }>(undefined);
  return (content: string) => {
    if (last.current?.content !== content) last.current = { content, key: randomKey() };
    return last.current.key;
  };
}

const order: RequestField[] = ["application", "resource", "actions", "duration", "reason"];

export function NewRequestPage() {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const { form, resourceQuery, setApplication, setResource, setActions, setDuration, setReason } = useForm();
  const [tried, setTried] = useState(false);
  const create = useCreateTicket();
  const keyFor = useIdempotencyKey();
  const element = useRef<HTMLFormElement>(null);

  const wanted = previewBody(form);
  const [settled] = useDebouncedValue(wanted === undefined ? "" : JSON.stringify(wanted), 200);
  const preview = wanted !== undefined && settled === JSON.stringify(wanted) ? wanted : undefined;

  const errors: RequestErrors = tried ? validate(form) : {};
  const refusal = create.error ? asApiError(create.error) : undefined;
  const message = (field: RequestField): string | undefined => {
    const kind = errors[field];
    if (kind === "long") return t("request.error.reasonLong", { count: reasonLimit });
    if (kind) return t(`request.error.${field}`);
    return refusal?.fieldMessage(field === "duration" ? "durationSeconds" : field);
  };
  const atField = order.some((field) => refusal?.fieldMessage(field === "duration" ? "durationSeconds" : field) !== undefined);

  const submit = () => {
    setTried(true);
    const wrong = validate(form);
    const first = order.find((field) => wrong[field]);
    if (first) {
      element.current?.querySelector<HTMLElement>(`[data-field="${first}"] :is(input, textarea)`)?.focus();
      return;
    }
    const body = toBody(form);
    create.mutate({ body, key: keyFor(JSON.stringify(body)) }, { onSuccess: (ticket) => void navigate(`/tickets/${ticket.id}`) });
  };

  const actions = resourceQuery.data?.actions;
  return (
    <Page title={t("request.title")} crumbs={[{ to: "/requests", label: t("requests.title") }]}>
      <div className={classes.layout}>
        <form
          ref={element}
          noValidate
          onSubmit={(event) => {
            event.preventDefault();
            submit();
          }}
          data-testid="request-form"
        >
          <Stack gap="lg">
            <div data-field="application">
              <ApplicationSelect value={form.application} onChange={setApplication} error={message("application")} />
            </div>
            <div data-field="resource">
              <ResourceSelect value={form.resource} onChange={setResource} error={message("resource")} application={form.application} />
            </div>
            <div data-field="actions">
              <Checkbox.Group label={t("request.actions")} required labelElement="div" value={form.actions} onChange={setActions} error={message("actions")}>
                {form.resource === "" && <p className={classes.muted}>{t("request.actionsFirst")}</p>}
                {resourceQuery.error && <ErrorState error={resourceQuery.error} onRetry={() => void resourceQuery.refetch()} />}
                {form.resource !== "" && resourceQuery.isPending && <Skeleton height={22} mt={6} />}
                {actions?.length === 0 && <Notice>{t("request.noClass")}</Notice>}
                <Group gap="lg" mt={6}>
                  {actions?.map((action) => (
                    <Checkbox
                      key={action.name}
                      value={action.name}
                      label={
                        <>
                          <code className={tables.code}>{action.name}</code> <span className={tables.muted}>{action.ports.join(", ")}</span>
                        </>
                      }
                      data-testid={`action-${action.name}`}
                    />
                  ))}
                </Group>
              </Checkbox.Group>
            </div>
            <div data-field="duration">
              <DurationField value={form} onChange={setDuration} error={message("duration")} />
            </div>
            <div data-field="reason">
              <Textarea
                label={t("request.reason")}
                description={t("request.reasonHint")}
                required
                autosize
                minRows={3}
                maxLength={reasonLimit}
                value={form.reason}
                onChange={(event) => setReason(event.currentTarget.value)}
                error={message("reason")}
                data-testid="request-reason"
              />
            </div>
            {refusal && !atField && (
              <div>
                <ErrorState error={refusal} title={t("error.actionTitle")} />
                {refusal.problem?.ticket && <Link to={`/tickets/${refusal.problem.ticket}`}>{t("request.openDuplicate")}</Link>}
              </div>
            )}
            <Group>
              <Button type="submit" loading={create.isPending} data-testid="submit-request">
                {t("request.submit")}
              </Button>
              <Button component={Link} to="/requests" variant="subtle" color="gray">
                {t("action.cancel")}
              </Button>
            </Group>
          </Stack>
        </form>
        <RequestPreview body={preview} />
      </div>
    </Page>
  );
}
