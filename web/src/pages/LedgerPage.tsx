import { Button, Group, TextInput } from "@mantine/core";
import { IconDownload } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";
import { useLedger } from "../api/governance";
import { useMe } from "../api/queries";
import { PersonSelect } from "../components/EntitySelect";
import { EmptyState, Loaded } from "../components/Feedback";
import classes from "../components/ledger/Ledger.module.css";
import { LedgerTable } from "../components/ledger/LedgerTable";
import { LedgerVerifier } from "../components/ledger/LedgerVerifier";
import { LoadMore } from "../components/LoadMore";
import { canSeeGovernance, GovernanceOnly } from "../components/GovernanceOnly";
import { Page } from "../components/Page";
import { SavedViews } from "../components/SavedViews";
import { SearchField } from "../components/SearchField";
import { ledgerFilterOf, ledgerKeys } from "../lib/ledger-filter";
import { useFilters } from "../lib/use-filters";
import type { FilterChange } from "../lib/use-filters";
import { ledgerOrders, useServerSort } from "../lib/use-server-sort";
import { useZone } from "../lib/use-zone";

const cleared = Object.fromEntries(ledgerKeys.map((key) => [key, undefined]));

function Filters({ search, onChange }: { search: URLSearchParams; onChange: (change: FilterChange) => void }) {
  const { t } = useTranslation();
  const value = (key: string) => search.get(key) ?? "";
  return (
    <div className={classes.filters} role="search" aria-label={t("ledger.filters")}>
      <PersonSelect label={t("ledger.actor")} size="sm" clearable placeholder={t("ledger.anyActor")} value={value("actor")} onChange={(actor) => onChange({ actor })} nothingFound={t("person.noMatch")} testId="ledger-actor" />
      <SearchField label={t("ledger.action")} placeholder={t("ledger.actionHint")} value={value("action")} onChange={(action) => onChange({ action })} testId="ledger-action" />
      <SearchField label={t("ledger.object")} placeholder={t("ledger.objectHint")} value={value("object")} onChange={(object) => onChange({ object })} testId="ledger-object" />
      <TextInput type="datetime-local" label={t("ledger.from")} value={value("from")} onChange={(event) => onChange({ from: event.currentTarget.value })} data-testid="ledger-from" />
      <TextInput type="datetime-local" label={t("ledger.to")} value={value("to")} onChange={(event) => onChange({ to: event.currentTarget.value })} data-testid="ledger-to" />
    </div>
  );
}

function Lines() {
  const { t } = useTranslation();
  const zone = useZone();
  const [search, change] = useFilters();
  const query = useLedger({ ...ledgerFilterOf(search, zone), ...useServerSort(ledgerOrders) });
  const filtered = ledgerKeys.some((key) => search.has(key));
  return (
    <>
      <LedgerVerifier />
      <Filters search={search} onChange={change} />
      <Loaded query={query}>
        {(data) => {
          const lines = data.pages.flatMap((page) => page.items);
          if (lines.length > 0) return <LedgerTable query={query} lines={lines} />;
          if (!filtered) return <EmptyState>{t("ledger.empty")}</EmptyState>;
          return (
            <EmptyState
              action={
                <Button variant="default" onClick={() => change(cleared)}>
                  {t("action.clear")}
                </Button>
              }
            >
              {t("ledger.noMatch")}
            </EmptyState>
          );
        }}
      </Loaded>
      <LoadMore query={query} />
    </>
  );
}

/** Export is a plain link, which lets the browser stream the export to a file. */
function Export() {
  const { t } = useTranslation();
  return (
    <Button component="a" href="/api/v1/ledger/export" download="ledger.jsonl" variant="default" leftSection={<IconDownload size={15} aria-hidden />} title={t("ledger.exportHint")} data-testid="export-ledger">
      {t("ledger.export")}
    </Button>
  );
}

/** LedgerPage lists all decisions and changes as they were recorded. */
export function LedgerPage() {
  const { t } = useTranslation();
  const [search] = useFilters();
  const me = useMe().data;
  return (
    <Page wide title={t("ledger.title")} sub={t("ledger.intro")} actions={canSeeGovernance(me) && <Group gap="sm"><SavedViews page="ledger" query={search.toString()} /><Export /></Group>}>
      <GovernanceOnly>
        <Lines />
      </GovernanceOnly>
    </Page>
  );
}
