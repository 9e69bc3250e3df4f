import { Button } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useResumeDowngrade } from "../../api/fleet";
import type { Scope } from "../../api/fleet";
import type { ActiveDowngrade, Downgrade } from "../../api/types";
import { downgradesCSV } from "../../lib/tables/rollout";
import { useWords } from "../../lib/use-words";
import { DataTable } from "../DataTable";
import type { Column } from "../DataTable";
import { EmptyState } from "../Feedback";
import { PersonName } from "../Names";
import { Section } from "../Page";
import { ReasonDialog } from "../ReasonDialog";
import { DayAndTime } from "../Time";
import { useToast } from "../toast-context";
import { instant } from "../../lib/table-sort";

const scopeOf = (active: ActiveDowngrade): Scope => ({ scope: active.scope, ...(active.class ? { class: active.class } : {}) });
const keyOf = (active: ActiveDowngrade) => [active.scope, active.class, active.until, active.reason, active.by.id].join("/");

/** ActiveDowngrades lists the active downgrades, each with the button that ends it. */
export function ActiveDowngrades({ extent }: { extent: Downgrade }) {
  const { t } = useTranslation();
  const words = useWords();
  const toast = useToast();
  const resume = useResumeDowngrade();
  const [ending, setEnding] = useState<Scope>();
  const columns: Column<ActiveDowngrade>[] = [
    { key: "scope", header: t("downgrade.scope"), cell: (row) => row.class ?? t("downgrade.scopes.all"), sortBy: (row) => row.class ?? "" },
    { key: "resources", header: t("downgrade.resources"), sortBy: (row) => row.resources, cell: (row) => t("downgrade.effective", { effective: words.number(row.effective ?? 0), resources: words.number(row.resources) }) },
    { key: "until", header: t("downgrade.until"), nowrap: true, cell: (row) => <DayAndTime at={row.until} />, sortBy: (row) => instant(row.until) },
    { key: "reason", header: t("downgrade.reason"), cell: (row) => row.reason },
    { key: "by", header: t("downgrade.by"), cell: (row) => <PersonName person={row.by} /> },
  ];
  if (extent.canAct) {
    columns.push({
      key: "resume",
      header: t("action.column"),
      silent: true,
      end: true,
      cell: (row) => (
        <Button size="xs" variant="default" onClick={() => setEnding(scopeOf(row))} data-testid={`resume-${row.class ?? "all"}`}>
          {t("downgrade.resume")}
        </Button>
      ),
    });
  }
  return (
    <Section title={t("downgrade.activeTitle")} count={extent.active.length}>
      {extent.active.length > 0 ? <DataTable csv={downgradesCSV} sortParam="active-sort" label={t("downgrade.activeTitle")} columns={columns} rows={extent.active} rowKey={keyOf} testId="active-downgrades" /> : <EmptyState testId="no-downgrade">{t("downgrade.activeNone")}</EmptyState>}
      {extent.canAct && extent.active.length > 1 && (
        <Button mt="md" variant="default" onClick={() => setEnding({ scope: "all" })} data-testid="resume-everything">
          {t("downgrade.resumeAll")}
        </Button>
      )}
      {ending && (
        <ReasonDialog
          title={t("downgrade.resumeTitle")}
          text={t("downgrade.resumeText")}
          confirm={t("downgrade.resumeConfirm")}
          danger
          pending={resume.isPending}
          error={resume.error}
          testId="resume"
          onConfirm={(reason) =>
            resume.mutate(
              { ...ending, reason },
              {
                onSuccess: () => {
                  toast(t("downgrade.resumed"));
                  setEnding(undefined);
                },
              },
            )
          }
          onClose={() => {
            resume.reset();
            setEnding(undefined);
          }}
        />
      )}
    </Section>
  );
}
