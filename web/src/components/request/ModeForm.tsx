import { Radio, Select, Stack } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { useSearchParams } from "react-router";
import { asApiError } from "../../api/client";
import { useResource } from "../../api/queries";
import type { Mode } from "../../api/types";
import { enforces, modeBody } from "../../lib/request";
import type { ModeRequest } from "../../lib/request";
import { useDraft } from "../../lib/use-draft";
import { usePlan, useReplay } from "../../lib/use-plan";
import { useRequest } from "../../lib/use-request";
import { useWords } from "../../lib/use-words";
import { ResourceSelect } from "../EntitySelect";
import { Notice } from "../Feedback";
import classes from "./Request.module.css";
import { RequestFrame } from "./RequestFrame";
import { RequestPreview } from "./RequestPreview";
import { EvidenceThreshold } from "./EvidenceThreshold";

/** modes contains all modes, from open to closed. */
export const modes: Mode[] = ["Observe", "Audit", "Enforce"];

interface ModeState {
  resource: string;
  mode?: Mode | undefined;
  clusterModes: Record<string, Mode>;
  reason: string;
  /** The reason to enforce without enough evidence; absent without an override. */
  override?: string | undefined;
}

const isMode = (value: unknown): value is Mode => modes.some((mode) => mode === value);

function isState(value: unknown): value is ModeState {
  if (typeof value !== "object" || value === null) return false;
  const { resource, mode, clusterModes, reason, override } = value as Record<string, unknown>;
  return typeof resource === "string" && typeof reason === "string" && (override === undefined || typeof override === "string") && (mode === undefined || isMode(mode)) && typeof clusterModes === "object" && clusterModes !== null && Object.values(clusterModes).every(isMode);
}

interface MembersProps {
  clusters: string[];
  mode: Mode;
  value: Record<string, Mode>;
  onChange: (value: Record<string, Mode>) => void;
}

/** Members selects members that get another mode than the rest, for example to try Enforce in one member first. */
function Members({ clusters, mode, value, onChange }: MembersProps) {
  const { t } = useTranslation();
  return (
    <details open={Object.values(value).some((each) => each !== mode)}>
      <summary>{t("request.mode.exceptions")}</summary>
      <div className={classes.members}>
        {clusters.map((cluster) => (
          <Select
            key={cluster}
            label={cluster}
            size="xs"
            allowDeselect={false}
            data={modes.map((each) => ({ value: each, label: t(`mode.${each}`) }))}
            value={value[cluster] ?? mode}
            onChange={(next) => onChange({ ...value, [cluster]: modes.find((each) => each === next) ?? mode })}
            data-testid={`cluster-mode-${cluster}`}
          />
        ))}
      </div>
    </details>
  );
}

/** ModeForm requests the onboarding of a resource, a change of its mode, or its offboarding. */
export function ModeForm({ person, kind }: { person: string; kind: ModeRequest["kind"] }) {
  const { t } = useTranslation();
  const words = useWords();
  const [search] = useSearchParams();
  const linked = modes.find((mode) => mode === search.get("mode"));
  const { form, change, restored } = useDraft<ModeState>(person, () => ({ resource: search.get("resource") ?? "", mode: linked ?? (kind === "onboard" ? "Audit" : undefined), clusterModes: {}, reason: "" }), isState);
  const resource = useResource(form.resource).data;
  const body = modeBody({ kind, ...form, mode: form.mode });
  const { query, isRequested } = usePlan(body);
  const impact = useReplay(body);
  const { tried, submit, sending, error } = useRequest();

  const refusal = error ? asApiError(error) : undefined;
  const refused = refusal?.itemMessage(0);
  const resourceError = (tried && form.resource === "" && t("request.error.resource")) || (refused && words.message(refused)) || undefined;
  const modeError = tried && form.mode === undefined ? t("request.error.mode") : undefined;
  const now = resource?.protection?.mode;
  const clusters = resource?.protection?.clusters.map((cluster) => cluster.cluster) ?? [];
  const misfit = resource && (kind === "onboard" ? resource.protection !== undefined : resource.protection === undefined);

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
      aside={<RequestPreview isRequested={isRequested} query={query} impact={impact} nameOf={() => resource?.title ?? form.resource} empty={t("request.mode.empty")} />}
    >
      <ResourceSelect label={t("request.resource")} required value={form.resource} onChange={(id) => change({ resource: id, clusterModes: {} })} error={resourceError} nothingFound={t("request.resourceEmpty")} testId="select-resource" />
      {misfit && <Notice>{t(kind === "onboard" ? "request.mode.isOnboarded" : "request.mode.notOnboarded")}</Notice>}
      {kind === "offboard" ? (
        <Notice>{t("request.mode.offboardText")}</Notice>
      ) : (
        <Radio.Group label={t("request.mode.label")} required value={form.mode ?? null} onChange={(mode) => change({ mode: modes.find((each) => each === mode) })} error={modeError}>
          <Stack gap={10} mt={8}>
            {modes.map((mode) => (
              <Radio key={mode} value={mode} label={mode === now ? t("request.mode.now", { mode: t(`mode.${mode}`) }) : t(`mode.${mode}`)} description={t(`modeHelp.${mode}`)} data-testid={`mode-${mode}`} />
            ))}
          </Stack>
        </Radio.Group>
      )}
      {kind === "mode" && form.mode && clusters.length > 1 && <Members clusters={clusters} mode={form.mode} value={form.clusterModes} onChange={(clusterModes) => change({ clusterModes })} />}
      {form.resource !== "" && now !== "Enforce" && enforces({ kind, mode: form.mode, clusterModes: form.clusterModes }) && <EvidenceThreshold resource={form.resource} value={form.override} onChange={(override) => change({ override })} />}
    </RequestFrame>
  );
}
