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
/** concerns reports whether the end of a scope closes resources that a downgrade opened. Of one of all resources, the end of a class closes those of the class. */
const concerns = (scope: Scope, active: ActiveDowngrade) => scope.scope === "all" || active.scope === "all" || active.class === scope.class;
const keyOf = (active: ActiveDowngrade) => [active.scope, active.class, active.until, active.reason, active.by.id].join("/");

/** Also lists the other downgrades that the end of a scope concerns. */
function Also({ scope, others }: { scope: Scope; others: ActiveDowngrade[] }) {
  const { t } = useTranslation();
  if (others.length === 0) return null;
  return (
    <div data-testid="resume-also">
      <p>{t("downgrade.alsoEnds")}</p>
      <ul>
        {others.map((row) => (
          <li key={keyOf(row)}>
            {row.class ?? t("downgrade.scopes.all")}
            {scope.scope === "class" && row.scope === "all" && ` (${t("downgrade.onlyOfClass", { class: scope.class })})`}: {row.reason} · <PersonName person={row.by} /> · {t("downgrade.until")} <DayAndTime at={row.until} />
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Ending is the scope that the person ends, and the key of the row whose button was used, if it was one of a row. */
interface Ending {
  scope: Scope;
  row?: string;
}

/** ActiveDowngrades lists the active downgrades, each with the button that ends it. */
export function ActiveDowngrades({ extent }: { extent: Downgrade }) {
  const { t } = useTranslation();
  const words = useWords();
  const toast = useToast();
  const resume = useResumeDowngrade();
  const [ending, setEnding] = useState<Ending>();
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
        <Button size="xs" variant="default" onClick={() => setEnding({ scope: scopeOf(row), row: keyOf(row) })} data-testid={`resume-${row.class ?? "all"}`}>
          {t("downgrade.resume")}
        </Button>
      ),
    });
  }
  return (
    <Section title={t("downgrade.activeTitle")} count={extent.active.length}>
      {extent.active.length > 0 ? <DataTable csv={downgradesCSV} sortParam="active-sort" label={t("downgrade.activeTitle")} columns={columns} rows={extent.active} rowKey={keyOf} testId="active-downgrades" /> : <EmptyState testId="no-downgrade">{t("downgrade.activeNone")}</EmptyState>}
      {extent.canAct && extent.active.length > 1 && (
        <Button mt="md" variant="default" onClick={() => setEnding({ scope: { scope: "all" } })} data-testid="resume-everything">
          {t("downgrade.resumeAll")}
        </Button>
      )}
      {ending && (
        <ReasonDialog
          title={ending.scope.class ? t("downgrade.resumeClassTitle", { class: ending.scope.class }) : t("downgrade.resumeTitle")}
          text={
            <>
              <p data-testid="resume-scope">{ending.scope.class ? t("downgrade.resumeClassText", { class: ending.scope.class }) : t("downgrade.resumeText")}</p>
              <Also scope={ending.scope} others={extent.active.filter((row) => concerns(ending.scope, row) && keyOf(row) !== ending.row)} />
            </>
          }
          confirm={t("downgrade.resumeConfirm")}
          danger
          pending={resume.isPending}
          error={resume.error}
          testId="resume"
          onConfirm={(reason) =>
            resume.mutate(
              { ...ending.scope, reason },
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
