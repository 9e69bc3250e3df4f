import { Checkbox, Stack, Textarea } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { isFinal } from "../../api/client";
import { useEvidence } from "../../api/flows";
import { useMe } from "../../api/queries";
import { textLimit } from "../../lib/request";
import { EvidencePanel } from "../evidence/EvidencePanel";
import { ErrorState, Notice, RowsSkeleton } from "../Feedback";
import tables from "../Tables.module.css";

interface OverrideProps {
  value: string | undefined;
  onChange: (value: string | undefined) => void;
}

/** ThresholdOverride asks for the reason to enforce below the evidence threshold. The override is recorded in the ledger. */
export function ThresholdOverride({ value, onChange }: OverrideProps) {
  const { t } = useTranslation();
  return (
    <Stack gap="xs">
      <Checkbox label={t("override.label")} description={t("override.help")} checked={value !== undefined} onChange={(event) => onChange(event.currentTarget.checked ? "" : undefined)} data-testid="override-check" />
      {value !== undefined && (
        <Textarea label={t("override.reason")} required autosize minRows={2} maxLength={textLimit} value={value} onChange={(event) => onChange(event.currentTarget.value)} error={value.trim() === "" ? t("decide.reasonNeeded") : undefined} data-testid="override-reason" />
      )}
    </Stack>
  );
}

/** EvidenceThreshold shows whether there is enough evidence to enforce the resource, what is missing, and what can be done about it. */
export function EvidenceThreshold({ resource, ...override }: OverrideProps & { resource: string }) {
  const { t } = useTranslation();
  const security = useMe().data?.roles.includes("security") ?? false;
  const query = useEvidence(resource);
  const { data: score } = query;
  if (!score) {
    // The server refuses the evidence to people who do not own the resource.
    if (isFinal(query.error)) return null;
    if (query.error) return <ErrorState error={query.error} title={t("override.unknown")} onRetry={() => void query.refetch()} />;
    return <RowsSkeleton rows={1} />;
  }
  return (
    <Stack gap="sm" data-testid="threshold" data-value={score.enough ? "enough" : "missing"}>
      {!score.enough && (
        <Notice>
          <span className={tables.sentence}>
            {t(score.value < score.threshold ? "override.missing" : "override.partLacking", { value: score.value, threshold: score.threshold })} {!security && t("override.askSecurity")} <Link to={`/resources/${encodeURIComponent(resource)}#proposal`}>{t("override.review")}</Link>
          </span>
        </Notice>
      )}
      <EvidencePanel score={score} />
      {!score.enough && security && <ThresholdOverride {...override} />}
    </Stack>
  );
}
