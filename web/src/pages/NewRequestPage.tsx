import { Button, Checkbox, Group, Skeleton, Stack, Textarea } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { Link, useNavigate, useSearchParams } from "react-router";
import { asApiError } from "../api/client";
import { useCreateTicket } from "../api/mutations";
import { useApplications, useMe, useResource } from "../api/queries";
import { ApplicationSelect, ResourceSelect } from "../components/CatalogSelects";
import { DurationField } from "../components/DurationField";
import type { DurationValue } from "../components/DurationField";
import { EmptyState, ErrorState, Loaded, Notice } from "../components/Feedback";
import { Page } from "../components/Page";
import { RequestPreview } from "../components/RequestPreview";
import tables from "../components/Tables.module.css";
import { clearDraft, loadDraft, saveDraft } from "../lib/draft";
import type { DraftForm } from "../lib/draft";
import { randomKey } from "../lib/names";
import { previewBody, textLimit, toBody, validate } from "../lib/request";
import { useWords } from "../lib/use-words";
import type { RequestErrors, RequestField, RequestForm } from "../lib/request";
import classes from "./NewRequestPage.module.css";

const usual: DurationValue = { duration: "30", customAmount: 12, customUnit: "hours" };

/** The form's values: what the person chose (also before a login that ended), else what the link brought, else the only possibility. */
function useForm(person: string, only: string | undefined) {
  const [search] = useSearchParams();
  const at = search.toString();
  const [restored] = useState(() => loadDraft(person, at));
  const [chosenApplication, setApplication] = useState((restored?.application || search.get("application")) ?? undefined);
  const [resource, setResource] = useState(restored?.resource ?? search.get("resource") ?? "");
  const [chosenActions, setActions] = useState(restored?.actions);
  const [duration, setDuration] = useState<DurationValue>(restored ?? usual);
  const [reason, setReason] = useState(restored?.reason ?? "");

  const resourceQuery = useResource(resource);
  const offered = resourceQuery.data?.actions.map((action) => action.name) ?? [];
  const linked = search.get("action");
  const byDefault = linked !== null && offered.includes(linked) ? [linked] : offered.length === 1 ? offered : [];

  const form: RequestForm = {
    application: chosenApplication ?? only ?? "",
    resource,
    actions: (chosenActions ?? byDefault).filter((action) => offered.includes(action)),
    duration: duration.duration,
    customAmount: duration.customAmount,
    customUnit: duration.customUnit,
    reason,
  };

  // Only typing is worth keeping: what a link brought comes again with the link. What is offered arrives late, so
  // only actions that the person chose are kept.
  const touched = reason !== "" || chosenActions !== undefined || duration !== (restored ?? usual) || resource !== (search.get("resource") ?? "");
  const draft: DraftForm = { ...form, actions: chosenActions };
  const kept = JSON.stringify(draft);
  useEffect(() => {
    if (touched) saveDraft({ person, search: at, form: JSON.parse(kept) as DraftForm });
  }, [touched, person, at, kept]);

  return {
    form,
    restored: restored !== undefined,
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

function Form({ person, only }: { person: string; only: string | undefined }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const words = useWords();
  const { form, restored, resourceQuery, setApplication, setResource, setActions, setDuration, setReason } = useForm(person, only);
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
    if (kind === "long") return t("request.error.reasonLong", { count: textLimit });
    if (kind) return t(`request.error.${field}`);
    const text = refusal?.fieldMessage(field === "duration" ? "durationSeconds" : field);
    return text === undefined ? undefined : words.said(text);
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
    create.mutate({ body, key: keyFor(JSON.stringify(body)) }, {
      onSuccess: (ticket) => {
        clearDraft();
        void navigate(`/tickets/${ticket.id}`);
      },
    });
  };

  const actions = resourceQuery.data?.actions;
  return (
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
            {restored && <p className={classes.muted} role="status" data-testid="draft-restored">{t("request.restored")}</p>}
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
                maxLength={textLimit}
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
              <Button component={Link} to="/requests" onClick={clearDraft} variant="subtle" color="gray">
                {t("action.cancel")}
              </Button>
            </Group>
          </Stack>
        </form>
        <RequestPreview body={preview} />
      </div>
  );
}

/** The form, or what to do instead for those who have nothing to ask for. */
export function NewRequestPage() {
  const { t } = useTranslation();
  const me = useMe();
  const mine = useApplications({ mine: true, limit: 200 });
  return (
    <Page title={t("request.title")} crumbs={[{ to: "/requests", label: t("requests.title") }]}>
      <Loaded query={me}>
        {({ person, roles }) => {
          if (roles.includes("auditor")) return <EmptyState testId="request-auditor">{t("request.auditor")}</EmptyState>;
          return (
            <Loaded query={mine}>
              {(data) => {
                const applications = data.pages.flatMap((page) => page.items);
                if (applications.length > 0) return <Form person={person.id} only={applications.length === 1 ? applications[0]?.id : undefined} />;
                return (
                  <EmptyState
                    testId="request-no-application"
                    action={
                      <Button component={Link} to="/applications?scope=all" variant="default">
                        {t("request.allApplications")}
                      </Button>
                    }
                  >
                    {t("request.noApplication")}
                  </EmptyState>
                );
              }}
            </Loaded>
          );
        }}
      </Loaded>
    </Page>
  );
}
