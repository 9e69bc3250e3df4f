import { Text } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { Link, useSearchParams } from "react-router";
import { asApiError } from "../../api/client";
import { applicationQuery, resourceQuery } from "../../api/queries";
import type { Message, Resource, WeeklyHours } from "../../api/types";
import { isHours } from "../../lib/hours";
import { shortName } from "../../lib/names";
import { rememberResources } from "../../lib/recent";
import { accessBody, accessErrors, accessPairs, accessPreview, basketLimit, durationChoices, isPair, isWrong, previewable, usualDuration, withoutPair } from "../../lib/request";
import type { AccessRequest, DurationValue, Pair } from "../../lib/request";
import { useDraft } from "../../lib/use-draft";
import { usePlan, useReplay } from "../../lib/use-plan";
import { useRequest } from "../../lib/use-request";
import { useWords } from "../../lib/use-words";
import { DurationField } from "../DurationField";
import { HoursField } from "../HoursField";
import { ApplicationsField } from "./ApplicationsField";
import { Basket } from "./Basket";
import type { BasketRow } from "./Basket";
import { BreakGlass } from "./BreakGlass";
import classes from "./Request.module.css";
import { RequestFrame } from "./RequestFrame";
import { RequestPreview } from "./RequestPreview";
import { ResourceSearch } from "./ResourceSearch";

interface AccessState {
  /** Absent until the person chooses some: who owns only one application need not choose. */
  applications?: string[] | undefined;
  /** Actions are absent until the person chooses some; the default actions are known once the resource was read. */
  basket: { resource: string; actions?: string[] | undefined }[];
  /** The pairs of an application and a resource that are not requested. */
  leftOut?: Pair[] | undefined;
  duration: DurationValue;
  /** Absent if the access is wanted at any hour. */
  hours?: WeeklyHours | undefined;
  reason: string;
}

const isText = (value: unknown): value is string => typeof value === "string";
const isTexts = (value: unknown): value is string[] => Array.isArray(value) && value.every(isText);
const isPairs = (value: unknown): value is Pair[] => Array.isArray(value) && value.every((each: Partial<Record<string, unknown>> | null) => each !== null && isText(each.application) && isText(each.resource));

function isState(value: unknown): value is AccessState {
  if (typeof value !== "object" || value === null) return false;
  const { applications, basket, leftOut, duration, hours, reason } = value as Record<string, unknown>;
  if ((applications !== undefined && !isTexts(applications)) || (leftOut !== undefined && !isPairs(leftOut)) || (hours !== undefined && !isHours(hours)) || !isText(reason) || !Array.isArray(basket)) return false;
  const wanted = basket.every((each: Partial<Record<string, unknown>> | null) => each !== null && isText(each.resource) && (each.actions === undefined || isTexts(each.actions)));
  if (!wanted || typeof duration !== "object" || duration === null) return false;
  const { duration: choice, customAmount, customUnit } = duration as Record<string, unknown>;
  return durationChoices.some((each) => each === choice) && (customAmount === undefined || typeof customAmount === "number") && (customUnit === "hours" || customUnit === "days");
}

/** linkedValues returns the different values of a parameter of the address, at most as many as a request can have. */
const linkedValues = (search: URLSearchParams, name: string): string[] => [...new Set(search.getAll(name))].filter((value) => value !== "").slice(0, basketLimit);

function useForm(person: string, only: string | undefined) {
  const [search] = useSearchParams();
  const initial = (): AccessState => ({
    applications: search.has("application") ? linkedValues(search, "application") : undefined,
    basket: linkedValues(search, "resource").map((resource) => ({ resource })),
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
  const applications = form.applications ?? (only === undefined ? [] : [only]);
  const details = useQueries({ queries: applications.map((application) => applicationQuery(application)) });
  const titles = new Map(applications.map((id, index) => [id, details[index]?.data?.title ?? id]));
  const request: AccessRequest = { applications, basket: rows.map(({ id, actions }) => ({ resource: id, actions })), leftOut: form.leftOut, duration: form.duration, hours: form.hours };
  const leftOut = form.leftOut ?? [];
  return {
    form,
    change,
    restored,
    rows,
    request,
    /** The applications that are left out for a resource. */
    leftOutOf: (resource: string) => applications.filter((application) => leftOut.some((each) => isPair(each, { application, resource }))),
    titleOf: (application: string) => titles.get(application) ?? application,
    // A pair is forgotten with its application or its resource, so that adding one again requests all of it.
    setApplications: (next: string[]) => change({ applications: next, leftOut: leftOut.filter(({ application }) => next.includes(application)) }),
    leaveOut: (pair: Pair) => change(withoutPair({ applications, basket: form.basket, leftOut }, pair)),
    takeBack: (pair: Pair) => change({ leftOut: leftOut.filter((each) => !isPair(each, pair)) }),
    add: (id: string) => change({ basket: [...form.basket, { resource: id }].slice(0, basketLimit) }),
    remove: (id: string) => change({ basket: form.basket.filter(({ resource }) => resource !== id), leftOut: leftOut.filter(({ resource }) => resource !== id) }),
    setActions: (id: string, actions: string[]) => change({ basket: form.basket.map((each) => (each.resource === id ? { ...each, actions } : each)) }),
  };
}

/** AccessForm requests access of one or several applications to one or several resources. */
export function AccessForm({ person, only }: { person: string; only: string | undefined }) {
  const { t } = useTranslation();
  const words = useWords();
  const { form, change, restored, rows, request, leftOutOf, titleOf, setApplications, leaveOut, takeBack, add, remove, setActions } = useForm(person, only);
  const { tried, submit, sending, error } = useRequest();
  const planned = accessPreview(request);
  const { query, isRequested } = usePlan(planned);
  const impact = useReplay(planned);

  const cap = query.data?.maxDurationSeconds;
  const errors = accessErrors(request, cap);
  const refusal = error ? asApiError(error) : undefined;
  const messageText = (text: Message | undefined) => text && words.message(text);
  const pairs = accessPairs(request);
  const several = request.applications.length > 1;
  const refusedItems = (resource: string) => {
    const refused = pairs.flatMap((pair, position) => {
      const text = pair.resource === resource ? messageText(refusal?.itemMessage(position)) : undefined;
      return text === undefined ? [] : [several ? t("request.error.ofApplication", { title: titleOf(pair.application), error: text }) : text];
    });
    return refused.length > 0 ? refused.join(" ") : undefined;
  };
  const previewed = accessPairs(previewable(request));
  const nameOf = (position: number) => {
    const pair = previewed[position];
    if (!pair) return "";
    const resource = rows.find(({ id }) => id === pair.resource)?.resource?.title ?? pair.resource;
    return several ? t("request.preview.pair", { application: titleOf(pair.application), resource }) : resource;
  };

  const shownRows: BasketRow[] = rows.map((row) => ({
    ...row,
    leftOut: leftOutOf(row.id).map((id) => ({ id, title: titleOf(id) })),
    error: tried && errors.actions.includes(row.id) && row.resource?.actions.length !== 0 ? t("request.error.actions") : refusedItems(row.id),
  }));
  const applicationError = (tried && errors.application && t("request.error.application")) || messageText(refusal?.fieldMessage("application"));
  // A request that is too large has no preview, so its error is shown before the form is submitted.
  const tooMany = errors.pairs === "many" ? t("request.error.many", { count: pairs.length, most: basketLimit }) : undefined;
  const nothingLeft = tried && errors.pairs === "none" ? t("request.error.none") : undefined;
  const resourceError = tooMany ?? nothingLeft ?? (tried && errors.basket ? t("request.error.resource") : undefined);
  // The preview reports the maximum duration, so it is shown before the form is submitted.
  const capError = errors.duration === "cap" ? t("request.error.cap", { duration: words.duration(cap) }) : undefined;
  const durationMessage = capError ?? ((tried && errors.duration && t("request.error.duration")) || messageText(refusal?.fieldMessage("durationSeconds")));
  const hoursMessage = (tried && errors.hours && t("request.error.hours")) || messageText(refusal?.fieldMessage("hours"));
  const atField = Boolean(applicationError) || Boolean(durationMessage) || Boolean(hoursMessage) || shownRows.some((row) => row.error);

  const body = isWrong(errors) ? undefined : accessBody(request);
  const remember = () => rememberResources(person, rows.flatMap(({ resource }) => (resource ? [{ id: resource.id, title: resource.title, hint: shortName(resource.name) }] : [])));
  const submitLabel = () => {
    if (pairs.length < 2) return t("request.submit");
    return several ? t("request.submitItems", { count: pairs.length }) : t("request.submitMany", { count: pairs.length });
  };

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
      submitLabel={submitLabel()}
      extra={<BreakGlass body={body} reason={form.reason} offered={query.data?.breakGlass === true} onSend={(glass) => submit(glass, form.reason, remember)} sending={sending} error={error} />}
      aside={
        <RequestPreview
          isRequested={isRequested}
          query={query}
          impact={impact}
          nameOf={nameOf}
          onRemove={(position) => {
            const pair = previewed[position];
            if (pair) leaveOut({ application: pair.application, resource: pair.resource });
          }}
          empty={t("request.preview.empty")}
        />
      }
    >
      <ApplicationsField
        mine
        description={t("request.applicationHint")}
        value={request.applications}
        onChange={setApplications}
        single={only !== undefined}
        error={applicationError}
        nothingFound={t("request.applicationEmpty")}
      />
      <div>
        <ResourceSearch applications={request.applications} person={person} taken={rows.map(({ id }) => id)} error={resourceError} onAdd={add} />
        <Basket rows={shownRows} onActions={setActions} onRemove={remove} onTakeBack={(resource, application) => takeBack({ application, resource })} />
        <Text size="sm" mt="xs" className={classes.broader}>
          {t("request.broader")} <Link to="/requests/new?kind=statement" data-testid="request-statement">{t("request.titles.statement")}</Link>
        </Text>
      </div>
      <DurationField value={form.duration} onChange={(duration) => change({ duration })} error={durationMessage || undefined} description={cap === undefined ? undefined : t("request.cap", { duration: words.duration(cap) })} />
      <HoursField value={form.hours} onChange={(hours) => change({ hours })} error={hoursMessage || undefined} />
    </RequestFrame>
  );
}
