import { Button, Group } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useWorkloadList } from "../api/governance";
import type { WorkloadFilter } from "../api/governance";
import { useMe } from "../api/queries";
import type { Role } from "../api/types";
import { ApplicationSelect } from "../components/EntitySelect";
import { EmptyState, Loaded } from "../components/Feedback";
import { LoadMore } from "../components/LoadMore";
import { Page } from "../components/Page";
import filters from "../components/requests/RequestFilters.module.css";
import { SearchField } from "../components/SearchField";
import tables from "../components/Tables.module.css";
import { AddWorkloadDialog } from "../components/workloads/AddWorkloadDialog";
import { SyncWorkloadsDialog } from "../components/workloads/SyncWorkloadsDialog";
import { UploadWorkloadsDialog } from "../components/workloads/UploadWorkloadsDialog";
import { WorkloadTable } from "../components/workloads/WorkloadTable";
import { useFilters } from "../lib/use-filters";
import { useKeptDialog } from "../lib/use-kept-dialog";
import { isWorkloadForm } from "../lib/workload-form";

const keys = ["q", "source", "application"] as const;
const cleared = Object.fromEntries(keys.map((key) => [key, undefined]));

const isText = (value: unknown): value is string => typeof value === "string";

/** WorkloadsPage lists machines outside the fleet and the applications that they act as. */
export function WorkloadsPage() {
  const { t } = useTranslation();
  const [search, change] = useFilters();
  const [syncing, setSyncing] = useState(false);
  const adding = useKeptDialog("workload", isWorkloadForm);
  const uploading = useKeptDialog("upload-workloads", isText);
  const roles: readonly Role[] = useMe().data?.roles ?? [];
  const security = roles.includes("security");
  const mayChange = !roles.includes("auditor") && (security || roles.includes("application-owner"));
  const filter: WorkloadFilter = Object.fromEntries(keys.flatMap((key) => (search.get(key) ? [[key, search.get(key)]] : [])));
  const query = useWorkloadList(filter);
  const filtered = keys.some((key) => search.has(key));
  const value = (key: string) => search.get(key) ?? "";

  return (
    <Page
      wide
      title={t("machines.title")}
      sub={t("machines.intro")}
      actions={
        mayChange && (
          <Group gap="sm">
            {security && (
              <Button variant="default" onClick={() => setSyncing(true)} data-testid="sync-workloads">
                {t("machines.sync")}
              </Button>
            )}
            <Button variant="default" onClick={uploading.open} data-testid="upload-workloads">
              {t("machines.upload")}
            </Button>
            <Button onClick={adding.open} data-testid="add-workload">
              {t("machines.add")}
            </Button>
          </Group>
        )
      }
    >
      <div className={filters.filters} role="search">
        <SearchField className={filters.text ?? ""} label={t("machines.search")} value={value("q")} onChange={(q) => change({ q })} testId="workload-search" />
        <ApplicationSelect size="sm" clearable placeholder={t("machines.anyApplication")} value={value("application")} onChange={(application) => change({ application })} nothingFound={t("applications.noMatch")} testId="workload-filter-application" />
        <SearchField label={t("workloads.source")} value={value("source")} onChange={(source) => change({ source })} testId="workload-source" />
      </div>
      <Loaded query={query}>
        {(data) => {
          const rows = data.pages.flatMap((page) => page.items);
          if (rows.length > 0) return <WorkloadTable query={query} rows={rows} mayChange={mayChange} />;
          if (!filtered) return <EmptyState>{t(security || roles.includes("auditor") ? "machines.empty" : "machines.emptyNone")}</EmptyState>;
          return (
            <EmptyState
              action={
                <Button variant="default" onClick={() => change(cleared)}>
                  {t("action.clear")}
                </Button>
              }
            >
              {t("machines.noMatch")}
            </EmptyState>
          );
        }}
      </Loaded>
      <LoadMore query={query} />
      {security && (
        <p className={`${tables.muted} ${tables.sentence}`}>
          {t("machines.platform")} <Link to="/profile#tokens">{t("machines.tokens")}</Link>
        </p>
      )}
      {adding.opened && mayChange && <AddWorkloadDialog all={security} draft={adding.draft} kept={adding.kept} onClose={adding.close} />}
      {uploading.opened && mayChange && <UploadWorkloadsDialog draft={uploading.draft} kept={uploading.kept} onClose={uploading.close} />}
      {syncing && <SyncWorkloadsDialog onClose={() => setSyncing(false)} />}
    </Page>
  );
}
