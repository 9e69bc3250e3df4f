import { useTranslation } from "react-i18next";
import type { DowngradeRun } from "../../api/types";
import { downgradeFailuresCSV } from "../../lib/tables/rollout";
import { useWords } from "../../lib/use-words";
import { DataTable } from "../DataTable";
import { Notice } from "../Feedback";
import classes from "../govern/Govern.module.css";
import { RefName } from "../Names";
import { Section } from "../Page";
import { RelativeTime } from "../Time";

/** DowngradeProgress shows the progress of the last downgrade or resumption, and what failed. */
export function DowngradeProgress({ run }: { run: DowngradeRun }) {
  const { t } = useTranslation();
  const words = useWords();
  const failed = run.failedTotal ?? run.failed.length;
  const text = t("downgrade.progress", { done: words.number(run.done), total: words.number(run.total) });
  return (
    <Section title={t("downgrade.runTitle")} testId="downgrade-run">
      <p role="status">
        {run.finishedAt ? t("downgrade.finished") : t(`downgrade.run.${run.resume ? "resume" : "begin"}`)} · {text} · {run.by.displayName} · <RelativeTime at={run.startedAt} />
      </p>
      <div className={`${classes.bar} ${classes.apart}`} role="progressbar" aria-label={t("downgrade.runTitle")} aria-valuemin={0} aria-valuemax={run.total} aria-valuenow={run.done} aria-valuetext={text}>
        <span style={{ width: `${run.total > 0 ? (run.done / run.total) * 100 : 100}%` }} />
      </div>
      {failed > 0 && (
        <>
          <Notice testId="downgrade-failed">
            {t("downgrade.failedTitle", { count: failed, number: words.number(failed) })}. {t("downgrade.failedHint")}
          </Notice>
          <DataTable
            label={t("downgrade.failedTitle", { count: failed, number: words.number(failed) })}
            columns={[
              { key: "resource", header: t("accessMap.resource"), cell: (row) => <RefName kind="resources" about={row.resource} />, sortBy: (row) => row.resource.title },
              { key: "message", header: t("finding.message"), cell: (row) => words.message(row.message) },
            ]}
            rows={run.failed}
            partial={failed > run.failed.length}
            csv={downgradeFailuresCSV}
            sortParam="failed-sort"
            rowKey={(row) => row.resource.name}
          />
        </>
      )}
    </Section>
  );
}
