import { SegmentedControl } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { asApiError } from "../../api/client";
import { hoursError } from "../../lib/hours";
import { durationError, isScopeEffect, type StatementRequest, scopeEffects, scopeNames, statementBody, usualDuration } from "../../lib/request";
import { useDraft } from "../../lib/use-draft";
import { usePlan } from "../../lib/use-plan";
import { useRequest } from "../../lib/use-request";
import { useWords } from "../../lib/use-words";
import { DurationField } from "../DurationField";
import { Notice } from "../Feedback";
import { HoursField } from "../HoursField";
import { ListField } from "../ListField";
import { RequestFrame } from "./RequestFrame";
import { RequestPreview } from "./RequestPreview";

type StatementState = StatementRequest & { reason: string };

function isState(value: unknown): value is StatementState {
  if (typeof value !== "object" || value === null) return false;
  const { effect, subjects, resources, actions, duration, reason } = value as Record<string, unknown>;
  const isList = (list: unknown) => Array.isArray(list) && list.every((each) => typeof each === "string");
  return isScopeEffect(effect) && isList(subjects) && isList(resources) && isList(actions) && typeof duration === "object" && duration !== null && typeof reason === "string";
}

/** StatementForm requests a statement that no pair of an application and a resource expresses: a deny, or one with prefixes, address ranges or anyone. */
export function StatementForm({ person }: { person: string }) {
  const { t } = useTranslation();
  const words = useWords();
  const initial = (): StatementState => ({ effect: "Allow", subjects: [], resources: [], actions: [], duration: usualDuration, reason: "" });
  const { form, change, restored } = useDraft<StatementState>(person, initial, isState);
  const body = statementBody(form);
  const { query, isRequested } = usePlan(body);
  const { tried, submit, sending, error } = useRequest();
  const refused = asApiError(error)?.itemMessage(0);
  const missing = (list: string[], text: string) => (tried && list.length === 0 ? text : undefined);
  const list = (value: string[], key: "subjects" | "resources" | "actions") => ({
    required: true,
    max: scopeNames,
    value,
    label: t(`request.statement.${key}`),
    description: t(`request.statement.${key}Hint`),
    error: missing(value, t("request.statement.missing")),
    testId: `statement-${key}`,
  });
  const wrongDuration = durationError(form.duration) === "range" ? t("request.error.duration") : undefined;
  const wrongHours = tried && hoursError(form.hours) ? t("request.error.hours") : undefined;

  return (
    <RequestFrame
      restored={restored}
      reason={form.reason}
      onReason={(reason) => change({ reason })}
      tried={tried}
      reasonHint={t("request.reasonWhy")}
      onSubmit={() => submit(body, form.reason)}
      sending={sending}
      error={error}
      atField={refused !== undefined}
      aside={<RequestPreview isRequested={isRequested} query={query} nameOf={() => t("kind.statement")} empty={t("request.statement.empty")} />}
    >
      <SegmentedControl aria-label={t("request.statement.effect")} data={scopeEffects.map((value) => ({ value, label: t(`request.statement.effects.${value}`) }))} value={form.effect} onChange={(effect) => isScopeEffect(effect) && change({ effect })} data-testid="statement-effect" />
      <ListField {...list(form.subjects, "subjects")} onChange={(subjects) => change({ subjects })} />
      <ListField {...list(form.actions, "actions")} onChange={(actions) => change({ actions })} />
      <ListField {...list(form.resources, "resources")} onChange={(resources) => change({ resources })} />
      {refused && <Notice testId="statement-problem">{words.message(refused)}</Notice>}
      <DurationField value={form.duration} onChange={(duration) => change({ duration })} error={wrongDuration} />
      <HoursField value={form.hours} onChange={(hours) => change({ hours })} error={wrongHours} />
    </RequestFrame>
  );
}
