import { Text } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { Link, useSearchParams } from "react-router";
import { asApiError } from "../../api/client";
import { resourceQuery } from "../../api/queries";
import type { Message, Resource, WeeklyHours } from "../../api/types";
import { isHours } from "../../lib/hours";
import { shortName } from "../../lib/names";
import { rememberResources } from "../../lib/recent";
import { accessBody, accessErrors, accessPreview, basketLimit, durationChoices, isWrong, usualDuration } from "../../lib/request";
import type { AccessRequest, DurationValue } from "../../lib/request";
import { useDraft } from "../../lib/use-draft";
import { usePlan, useReplay } from "../../lib/use-plan";
import { useRequest } from "../../lib/use-request";
import { useWords } from "../../lib/use-words";
import { DurationField } from "../DurationField";
import { ApplicationSelect } from "../EntitySelect";
import { HoursField } from "../HoursField";
import { Basket } from "./Basket";
import type { BasketRow } from "./Basket";
import { BreakGlass } from "./BreakGlass";
import classes from "./Request.module.css";
import { RequestFrame } from "./RequestFrame";
import { RequestPreview } from "./RequestPreview";
import { ResourceSearch } from "./ResourceSearch";

interface AccessState {
  /** Absent if the person owns only one application. */
  application?: string | undefined;
  /** Actions are absent until the person chooses some; the default actions are known once the resource was read. */
  basket: { resource: string; actions?: string[] | undefined }[];
  duration: DurationValue;
  /** Absent if the access is wanted at any hour. */
  hours?: WeeklyHours | undefined;
  reason: string;
}

const isText = (value: unknown): value is string => typeof value === "string";

function isState(value: unknown): value is AccessState {
  if (typeof value !== "object" || value === null) return false;
  const { application, basket, duration, hours, reason } = value as Record<string, unknown>;
  if ((application !== undefined && !isText(application)) || (hours !== undefined && !isHours(hours)) || !isText(reason) || !Array.isArray(basket)) return false;
  const wanted = basket.every((each: Partial<Record<string, unknown>> | null) => each !== null && isText(each.resource) && (each.actions === undefined || (Array.isArray(each.actions) && each.actions.every(isText))));
  if (!wanted || typeof duration !== "object" || duration === null) return false;
  const { duration: choice, customAmount, customUnit } = duration as Record<string, unknown>;
  return durationChoices.some((each) => each === choice) && (customAmount === undefined || typeof customAmount === "number") && (customUnit === "hours" || customUnit === "days");
}

function useForm(person: string, only: string | undefined) {
  const [search] = useSearchParams();
  const initial = (): AccessState => ({
    application: search.get("application") ?? undefined,
    basket: [...new Set(search.getAll("resource"))].slice(0, basketLimit).map((resource) => ({ resource })),
    duration: usualDuration,
    reason: "",
  });
  const { form, change, restored } = useDraft(person, initial, isState);
  const resources = useQueries({ queries: form.basket.map(({ resource }) => resourceQuery(resource)) });
  const linked = search.get("action");

  const usual = (resource: Resource | undefined): string[] => {
    const offered = resource?.actions.map((action) => action.name) ?? [];
    return linked !== null && offered.includes(linked) ? [linked] : offered.length === 1 ? offered : [];
  };
  const rows = form.basket.map(({ resource: id, actions }, index) => {
    const query = resources[index];
    return { id, resource: query?.data, failed: query?.error ?? undefined, retry: () => void query?.refetch(), actions: actions ?? usual(query?.data) };
  });
  const request: AccessRequest = { application: form.application ?? only ?? "", basket: rows.map(({ id, actions }) => ({ resource: id, actions })), duration: form.duration, hours: form.hours };
  return {
    form,
    change,
    restored,
    rows,
    request,
    add: (id: string) => change({ basket: [...form.basket, { resource: id }].slice(0, basketLimit) }),
    remove: (id: string) => change({ basket: form.basket.filter(({ resource }) => resource !== id) }),
    setActions: (id: string, actions: string[]) => change({ basket: form.basket.map((each) => (each.resource === id ? { ...each, actions } : each)) }),
  };
}

/** AccessForm requests access of one application to one or several resources. */
export function AccessForm({ person, only }: { person: string; only: string | undefined }) {
  const { t } = useTranslation();
  const words = useWords();
  const { form, change, restored, rows, request, add, remove, setActions } = useForm(person, only);
  const { tried, submit, sending, error } = useRequest();
  const planned = accessPreview(request);
  const { query, isRequested } = usePlan(planned);
  const impact = useReplay(planned);

  const cap = query.data?.maxDurationSeconds;
  const errors = accessErrors(request, cap);
  const refusal = error ? asApiError(error) : undefined;
  const messageText = (text: Message | undefined) => text && words.message(text);
  const refusedItem = (position: number) => messageText(refusal?.itemMessage(position));
  const previewed = rows.filter(({ actions }) => actions.length > 0);
  const nameOf = (position: number) => previewed[position]?.resource?.title ?? previewed[position]?.id ?? "";

  const shownRows: BasketRow[] = rows.map((row, position) => ({
    ...row,
    error: tried && errors.actions.includes(row.id) && row.resource?.actions.length !== 0 ? t("request.error.actions") : refusedItem(position),
  }));
  const applicationError = (tried && errors.application && t("request.error.application")) || messageText(refusal?.fieldMessage("application"));
  // The preview reports the maximum duration, so it is shown before the form is submitted.
  const capError = errors.duration === "cap" ? t("request.error.cap", { duration: words.duration(cap) }) : undefined;
  const durationMessage = capError ?? ((tried && errors.duration && t("request.error.duration")) || messageText(refusal?.fieldMessage("durationSeconds")));
  const hoursMessage = (tried && errors.hours && t("request.error.hours")) || messageText(refusal?.fieldMessage("hours"));
  const atField = Boolean(applicationError) || Boolean(durationMessage) || Boolean(hoursMessage) || shownRows.some((row) => row.error);

  const body = isWrong(errors) ? undefined : accessBody(request);
  const remember = () => rememberResources(person, rows.flatMap(({ resource }) => (resource ? [{ id: resource.id, title: resource.title, hint: shortName(resource.name) }] : [])));

  return (
    <RequestFrame
      restored={restored}
      reason={form.reason}
      onReason={(reason) => change({ reason })}
      tried={tried}
      onSubmit={() => submit(body, form.reason, remember)}
      sending={sending}
      error={error}
      atField={atField}
      submitLabel={rows.length > 1 ? t("request.submitMany", { count: rows.length }) : t("request.submit")}
      extra={<BreakGlass body={body} reason={form.reason} offered={query.data?.breakGlass === true} onSend={(glass) => submit(glass, form.reason, remember)} sending={sending} error={error} />}
      aside={
        <RequestPreview
          isRequested={isRequested}
          query={query}
          impact={impact}
          nameOf={nameOf}
          onRemove={(position) => {
            const id = previewed[position]?.id;
            if (id) remove(id);
          }}
          empty={t("request.preview.empty")}
        />
      }
    >
      <ApplicationSelect
        mine
        label={t("request.application")}
        description={t("request.applicationHint")}
        required
        value={request.application}
        onChange={(application) => change({ application })}
        error={applicationError}
        nothingFound={t("request.applicationEmpty")}
        testId="select-application"
      />
      <div>
        <ResourceSearch
          application={request.application}
          person={person}
          taken={rows.map(({ id }) => id)}
          error={tried && errors.basket ? t("request.error.resource") : undefined}
          onAdd={add}
        />
        <Basket rows={shownRows} onActions={setActions} onRemove={remove} />
        <Text size="sm" mt="xs" className={classes.broader}>
          {t("request.broader")} <Link to="/requests/new?kind=statement" data-testid="request-statement">{t("request.titles.statement")}</Link>
        </Text>
      </div>
      <DurationField value={form.duration} onChange={(duration) => change({ duration })} error={durationMessage || undefined} description={cap === undefined ? undefined : t("request.cap", { duration: words.duration(cap) })} />
      <HoursField value={form.hours} onChange={(hours) => change({ hours })} error={hoursMessage || undefined} />
    </RequestFrame>
  );
}
