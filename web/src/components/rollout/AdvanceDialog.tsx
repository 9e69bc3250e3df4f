import { MultiSelect, Radio, Stack, Text, Textarea } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { advancedAtOnce, useAdvance } from "../../api/flow-mutations";
import type { RolloutCard } from "../../api/types";
import { advanceBody, clustersOf, lacking, modeOf, ofKind, split, targets, usualTarget } from "../../lib/rollout";
import type { Target } from "../../lib/rollout";
import { basketLimit, textLimit } from "../../lib/request";
import { useKey } from "../../lib/use-key";
import { usePlan, useReplay } from "../../lib/use-plan";
import { useWords } from "../../lib/use-words";
import { ImpactAnswer } from "../evidence/Impact";
import { Notice } from "../Feedback";
import { FormDialog } from "../FormDialog";
import { PlannedDeciders } from "../PlannedDeciders";
import { ThresholdOverride } from "../request/EvidenceThreshold";
import { AffectedResources } from "./AffectedResources";
import { RolloutResults } from "./RolloutResults";

interface Props {
  cards: RolloutCard[];
  onClose: (done: boolean) => void;
}

/**
 * Replayed shows what the change would have done to the connections of the last days. Resources that are not onboarded yet are replayed as onboarded in
 * the target mode.
 */
function Replayed({ kind, cards, target, clusters }: { kind: "mode" | "onboard"; cards: RolloutCard[]; target: Target; clusters: string[] }) {
  const { t } = useTranslation();
  const words = useWords();
  const body = advanceBody(kind, cards, target, clusters);
  const query = useReplay(body);
  const count = ofKind(kind, cards).length;
  if (!body) return null;
  return (
    <div data-testid={`replayed-${kind}`}>
      <Text size="xs" c="dimmed" fw={560} mb={4}>{t(kind === "mode" ? "impact.short" : "impact.shortOnboard")}</Text>
      <ImpactAnswer query={query} />
      {count > basketLimit && (
        <Text size="xs" mt={4} data-testid={`covered-${kind}`}>
          {t("rollout.advance.covered", { count, number: words.number(count), limit: basketLimit })}
        </Text>
      )}
    </div>
  );
}

/** Decided shows who would decide. Missing evidence is reported once for all resources, so it is left out here. */
function Decided({ kind, cards, target, clusters }: { kind: "mode" | "onboard"; cards: RolloutCard[]; target: Target; clusters: string[] }) {
  const { query, isRequested } = usePlan(advanceBody(kind, cards, target, clusters));
  return isRequested ? <PlannedDeciders query={query} shows={({ problem }) => problem?.code !== "evidence"} /> : null;
}

/**
 * AdvanceDialog requests another mode for several resources, with one ticket for each. It shows the effect before and the result of each resource
 * afterwards.
 */
export function AdvanceDialog({ cards, onClose }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  const advance = useAdvance();
  const keyOf = useKey();
  // The selection is copied when the dialog opens, because the board keeps changing.
  const [{ able, others }] = useState(() => split(cards, "advance"));
  const only = able.length === 1 && others.length === 0 ? able[0] : undefined;
  const [target, setTarget] = useState<Target>(() => usualTarget(able));
  const [clusters, setClusters] = useState<string[]>([]);
  const [reason, setReason] = useState("");
  const [override, setOverride] = useState<string>();
  const [tried, setTried] = useState(false);
  const [done, setDone] = useState(0);
  const unknown = target === "enforce" ? lacking(able) : [];
  const mayOverride = unknown.length > 0 && unknown.every(({ can }) => can.override);
  // A reason that was entered stays when another mode hides its field. It is then neither checked nor sent.
  const overriding = mayOverride ? override?.trim() : undefined;

  if (advance.data) return <RolloutResults results={advance.data.items} cards={able} onClose={() => onClose(true)} />;

  const submit = () => {
    setTried(true);
    if (reason.trim() === "" || able.length === 0 || overriding === "") return false;
    const body = {
      resources: able.flatMap(({ resource }) => (resource.id === undefined ? [] : [resource.id])),
      stage: target,
      reason: reason.trim(),
      ...(clusters.length > 0 ? { clusters } : {}),
      ...(overriding ? { override: { reason: overriding } } : {}),
    };
    setDone(0);
    advance.mutate({ body, key: keyOf(body), onProgress: setDone });
    return true;
  };

  return (
    <FormDialog
      title={only ? t("rollout.advance.titleOf", { resource: only.resource.title }) : t("rollout.advance.title", { count: able.length })}
      size="lg"
      testId="advance-dialog"
      submit={{ label: only ? t("rollout.advance.ask") : t("rollout.advance.confirm", { count: able.length }), disabled: able.length === 0, testId: "advance-confirm", onSubmit: submit }}
      pending={advance.isPending}
      error={advance.error}
      values={{ target, clusters, reason, override }}
      onClose={() => onClose(false)}
    >
      {(fieldError) => (
        <>
          {!only && <AffectedResources able={able} others={others} />}
          <Radio.Group label={t("rollout.advance.to")} value={target} onChange={(next) => setTarget(targets.find((each) => each === next) ?? target)}>
            <Stack gap={8} mt={6}>
              {targets.map((each) => (
                <Radio key={each} value={each} label={t(`mode.${modeOf(each)}`)} description={t(`modeHelp.${modeOf(each)}`)} data-testid={`advance-${each}`} />
              ))}
            </Stack>
          </Radio.Group>
          <MultiSelect label={t("rollout.advance.clusters")} description={t("rollout.advance.clustersHelp")} placeholder={clusters.length === 0 ? t("rollout.advance.everyCluster") : undefined} data={clustersOf(able)} value={clusters} onChange={setClusters} clearable data-testid="advance-clusters" />
          <Replayed kind="mode" cards={able} target={target} clusters={clusters} />
          <Replayed kind="onboard" cards={able} target={target} clusters={clusters} />
          {unknown.length > 0 && <Notice testId="advance-lacking">{t("rollout.advance.lacking", { count: unknown.length, names: words.list(unknown.slice(0, 5).map(({ resource }) => resource.title)) })}</Notice>}
          <Decided kind="mode" cards={able} target={target} clusters={clusters} />
          <Decided kind="onboard" cards={able} target={target} clusters={clusters} />
          {mayOverride && <ThresholdOverride value={override} onChange={setOverride} />}
          <Textarea
            label={t("decide.reason")}
            description={t("decide.reasonHint")}
            required
            autosize
            minRows={2}
            maxLength={textLimit}
            value={reason}
            onChange={(event) => setReason(event.currentTarget.value)}
            error={tried && reason.trim() === "" ? t("decide.reasonNeeded") : fieldError("reason")}
            data-testid="advance-reason"
          />
          {advance.isPending && able.length > advancedAtOnce && <Notice live testId="advance-progress">{t("rollout.progress", { done: words.number(done), total: words.number(able.length) })}</Notice>}
        </>
      )}
    </FormDialog>
  );
}
