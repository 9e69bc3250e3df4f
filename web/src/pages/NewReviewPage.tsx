import { ActionIcon, Button, Fieldset, MultiSelect, NumberInput, Select, Stack, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { IconPlus, IconTrash } from "@tabler/icons-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useNavigate, useSearchParams } from "react-router";
import { asApiError, fieldName } from "../api/client";
import { useClasses, useMe } from "../api/queries";
import { useCreateReview, useReviewPreview } from "../api/reviews";
import type { ReviewPreview, Sensitivity } from "../api/types";
import { GroupSelect } from "../components/EntitySelect";
import { ErrorState, Loaded, Notice } from "../components/Feedback";
import { ListField } from "../components/ListField";
import { Page } from "../components/Page";
import { ReviewerRule, StatementText, useRule } from "../components/reviews/parts";
import classes from "../components/reviews/Reviews.module.css";
import { useToast } from "../components/toast-context";
import { emptyForm, groupRule, mostRules, reviewOf, ruleKindOf, ruleKinds, scopeOf } from "../lib/reviews";
import type { ReviewForm } from "../lib/reviews";
import { useKey } from "../lib/use-key";
import { useWords } from "../lib/use-words";

const sensitivities = ["low", "medium", "high"] as const satisfies readonly Sensitivity[];
const silences = ["shorten", "revoke", "keep"] as const;

function Preview({ preview }: { preview: ReviewPreview }) {
  const { t } = useTranslation();
  const words = useWords();
  if (preview.accesses === 0) return <p data-testid="preview-none">{t("accessReview.previewNone")}</p>;
  return (
    <>
      <p className={classes.big} data-testid="preview-accesses">{t("accessReview.previewAccesses", { count: preview.accesses })}</p>
      <p className={classes.muted}>
        {t("accessReview.previewReviewers", { count: preview.reviewers })} · {t("accessReview.previewPermanent", { count: preview.permanent })}
        {preview.busiest && ` · ${t("accessReview.previewBusiest", { name: preview.busiest.displayName, count: preview.busiestHas ?? 0 })}`}
      </p>
      <ul className={classes.list}>
        {Object.entries(preview.rules).map(([each, count]) => (
          <li key={each}><ReviewerRule rule={each} />: <b>{count}</b></li>
        ))}
      </ul>
      {preview.unreviewed > 0 && <Notice testId="preview-unreviewed">{t("accessReview.previewUnreviewed", { count: preview.unreviewed })}</Notice>}
      <Text size="sm" fw={600} mt="md">{t("accessReview.examples")}</Text>
      <ul className={classes.list}>
        {preview.examples.slice(0, 5).map(({ reviewers, ...access }, index) => (
          <li key={index}>
            {access.scope ? <StatementText scope={access.scope} limit={3} /> : words.access(access)}
            <div className={classes.muted}>{words.names(reviewers.map(({ displayName }) => displayName), 3) || t("accessReview.nobody")}</div>
          </li>
        ))}
      </ul>
    </>
  );
}

interface RulesProps {
  rules: string[];
  onChange: (rules: string[]) => void;
  /** Whether the form was sent, so that what is missing is marked. */
  tried: boolean;
  error: string | undefined;
}

/** Rules are the rules that name the reviewers, in the order in which they are tried. */
function Rules({ rules, onChange, tried, error }: RulesProps) {
  const { t } = useTranslation();
  const rule = useRule();
  const put = (at: number, next: string) => onChange(rules.map((each, index) => (index === at ? next : each)));
  return (
    <Stack gap="sm" data-testid="review-rules">
      {rules.map((each, at) => {
        const { kind, group } = ruleKindOf(each);
        const number = at + 1;
        const again = rules.indexOf(each) < at;
        return (
          <div key={at} className={classes.rule} data-kind={kind}>
            <Select
              label={t("accessReview.ruleNumber", { number })}
              allowDeselect={false}
              data={ruleKinds.map((value) => ({ value: value as string, label: value === "group" ? t("accessReview.ruleGroup") : rule(value) }))}
              value={kind}
              onChange={(next) => put(at, next === "group" ? groupRule("") : (next ?? each))}
              error={again && each !== groupRule("") && t("accessReview.sameRule")}
              data-testid={`review-rule-${at}`}
            />
            {kind === "group" && <GroupSelect label={t("accessReview.ruleGroupOf", { number })} required value={group} onChange={(next) => put(at, groupRule(next))} error={tried && group === "" && t("accessReview.needGroup")} nothingFound={t("group.noMatch")} testId={`review-group-${at}`} />}
            {rules.length > 1 && (
              <ActionIcon variant="subtle" color="gray" size="lg" mt={24} onClick={() => onChange(rules.filter((_, index) => index !== at))} aria-label={t("accessReview.removeRule", { number })} data-testid={`remove-rule-${at}`}>
                <IconTrash size={17} aria-hidden />
              </ActionIcon>
            )}
          </div>
        );
      })}
      {error && <Text size="sm" c="red">{error}</Text>}
      {rules.length < mostRules ? (
        <div><Button variant="default" size="xs" leftSection={<IconPlus size={15} aria-hidden />} onClick={() => onChange([...rules, groupRule("")])} data-testid="add-rule">{t("accessReview.addRule")}</Button></div>
      ) : (
        <Text size="sm" c="dimmed">{t("accessReview.mostRules", { number: mostRules })}</Text>
      )}
    </Stack>
  );
}

/** NewReviewPage begins an access review. Beside the form it shows what the review would contain now. */
export function NewReviewPage() {
  const { t } = useTranslation();
  const words = useWords();
  const navigate = useNavigate();
  const toast = useToast();
  const me = useMe().data;
  const [search] = useSearchParams();
  const [form, setForm] = useState<ReviewForm>(() => ({ ...emptyForm, ...scopeOf(search) }));
  const [begun] = useState(() => new Date());
  const [missing, setMissing] = useState(false);
  const keyOf = useKey();
  const create = useCreateReview();
  const known = useClasses();
  const set = <K extends keyof ReviewForm>(key: K, value: ReviewForm[K]) => setForm((before) => ({ ...before, [key]: value }));
  const body = reviewOf(form, begun);
  // The name changes nothing about the preview, so it is not read again while the name is typed.
  const asked = body && { ...body, name: "-" };
  const wanted = JSON.stringify(asked);
  const [settled] = useDebouncedValue(wanted, 400);
  const preview = useReviewPreview(settled === wanted ? asked : undefined);
  const problem = create.error ? asApiError(create.error).problem : undefined;
  const fieldError = (...names: string[]) => {
    const found = problem?.fields?.find(({ field }) => names.includes(fieldName(field)));
    return found && words.message(found.message);
  };
  const allowed = me === undefined || (me.roles.includes("security") && !me.roles.includes("auditor"));
  const number = (key: "olderThan" | "grace" | "due" | "window" | "remind", min: number, max: number, field: string, optional = false) => (
    <NumberInput
      label={t(({ olderThan: "accessReview.olderThan", grace: "accessReview.grace", due: "accessReview.deadline", window: "accessReview.window", remind: "accessReview.remind" } as const)[key])}
      min={min}
      max={max}
      clampBehavior="strict"
      allowDecimal={false}
      allowNegative={false}
      required={!optional}
      value={form[key] ?? ""}
      onChange={(next) => set(key, typeof next === "number" ? next : undefined)}
      error={fieldError(field) ?? (missing && !optional && form[key] === undefined && t("accessReview.needNumber"))}
      data-testid={`review-${key}`}
    />
  );
  const send = () => {
    if (!body || body.name === "" || form.rules.includes(groupRule(""))) {
      setMissing(true);
      return;
    }
    const due = reviewOf(form, new Date()) ?? body;
    create.mutate(
      { body: due, key: keyOf(form) },
      {
        onSuccess: (review) => {
          toast(t("accessReview.created", { name: review.name }));
          void navigate(`/reviews/${review.id}`);
        },
      },
    );
  };
  return (
    <Page wide title={t("accessReview.new")} sub={t("accessReview.intro")} crumbs={[{ to: "/reviews", label: t("accessReview.title") }, { label: t("accessReview.new") }]}>
      {!allowed ? (
        <Notice testId="not-allowed">{t("governing.notYours")}</Notice>
      ) : (
        <form
          noValidate
          className={classes.form}
          onSubmit={(event) => {
            event.preventDefault();
            send();
          }}
          data-testid="new-review-form"
        >
          <Stack gap="lg">
            <TextInput label={t("accessReview.name")} placeholder={t("accessReview.namePlaceholder")} required maxLength={120} value={form.name} onChange={(event) => set("name", event.currentTarget.value)} error={fieldError("name") ?? (missing && form.name.trim() === "" && t("accessReview.needName"))} data-testid="review-name" />
            <Fieldset legend={t("accessReview.scope")}>
              <Stack gap="sm">
                <Text size="sm" c="dimmed">{t("accessReview.scopeHint")}</Text>
                <MultiSelect label={t("accessReview.classes")} placeholder={form.classes.length === 0 ? t("accessReview.classesAny") : ""} searchable clearable data={(known.data?.items ?? []).filter(({ kind }) => kind === "ResourceClass").map(({ name }) => name)} value={form.classes} onChange={(next) => set("classes", next)} error={fieldError("classes")} data-testid="review-classes" />
                <ListField label={t("accessReview.teams")} description={t("accessReview.teamsHint")} placeholder={form.teams.length === 0 ? t("accessReview.teamsAny") : ""} max={50} value={form.teams} onChange={(next) => set("teams", next)} error={fieldError("teams")} testId="review-teams" />
                <MultiSelect label={t("accessReview.sensitivities")} placeholder={form.sensitivities.length === 0 ? t("accessReview.sensitivitiesAny") : ""} clearable data={sensitivities.map((each) => ({ value: each as string, label: t(`sensitivity.${each}`) }))} value={form.sensitivities} onChange={(next) => set("sensitivities", sensitivities.filter((each) => next.includes(each)))} data-testid="review-sensitivities" />
                {number("olderThan", 0, 3660, "olderThanDays", true)}
              </Stack>
            </Fieldset>
            <Fieldset legend={t("accessReview.reviewers")}>
              <Stack gap="sm">
                <Text size="sm" c="dimmed">{t("accessReview.reviewersHint")}</Text>
                <Rules rules={form.rules} onChange={(rules) => set("rules", rules)} tried={missing} error={fieldError("reviewers")} />
              </Stack>
            </Fieldset>
            <div className={classes.pair}>
              {number("due", 1, 180, "deadline")}
              {number("remind", 1, 180, "remindEveryDays", true)}
              {number("window", 14, 365, "windowDays")}
            </div>
            <Text size="xs" c="dimmed">{t("accessReview.windowHint")}</Text>
            <div className={classes.pair}>
              <Select label={t("accessReview.silence")} allowDeselect={false} data={silences.map((each) => ({ value: each as string, label: t(`accessReview.silenceIs.${each}`) }))} value={form.silence} onChange={(next) => set("silence", silences.find((each) => each === next) ?? form.silence)} data-testid="review-silence" />
              {form.silence === "shorten" && number("grace", 1, 180, "graceDays")}
            </div>
            {create.error && <ErrorState error={create.error} title={t("error.actionTitle")} />}
            <div><Button type="submit" loading={create.isPending} data-testid="create-review">{t("accessReview.create")}</Button></div>
          </Stack>
          <section className={classes.preview} aria-label={t("accessReview.preview")} aria-live="polite" data-testid="review-preview">
            <Text size="sm" fw={600} mb="xs">{t("accessReview.preview")}</Text>
            {asked ? <Loaded query={preview}>{(data) => <Preview preview={data} />}</Loaded> : <p className={classes.muted}>{t("accessReview.previewWaiting")}</p>}
          </section>
        </form>
      )}
    </Page>
  );
}
