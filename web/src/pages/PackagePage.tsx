import { Button, Group, Text } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link, useParams } from "react-router";
import { useArchivePackage, usePackage, usePackageHolders, usePackageHolderUses } from "../api/packages";
import type { AccessPackage, PackageHolder, PackageUpdate, PackageUpdateApplication, Use } from "../api/types";
import { ConfirmDialog } from "../components/ConfirmDialog";
import { DataTable } from "../components/DataTable";
import { EmptyState, Loaded, Notice } from "../components/Feedback";
import { Hours } from "../components/Hours";
import { LastUse } from "../components/LastUse";
import { LoadMore } from "../components/LoadMore";
import { Owners, RefName } from "../components/Names";
import { Page, Section } from "../components/Page";
import tables from "../components/Tables.module.css";
import { RelativeTime } from "../components/Time";
import { useToast } from "../components/toast-context";
import { packageHoldersCSV, packageResourcesCSV, packageUpdateCSV, packageVersionsCSV } from "../lib/tables/packages";
import { flowsPath } from "../lib/flow-link";
import { useWords } from "../lib/use-words";
import { instant } from "../lib/table-sort";

function Tickets({ tickets }: { tickets: string[] }) {
  return tickets.map((ticket, position) => (
    <span key={ticket}>
      {position > 0 && ", "}
      <Link to={`/tickets/${ticket}`}>{ticket}</Link>
    </span>
  ));
}

/** useLastUses returns when a holder last used its access by a package. */
function useLastUses(name: string): (row: PackageHolder) => Use {
  const { data, isLoading } = usePackageHolderUses(name);
  if (!data?.available) return () => (isLoading ? null : undefined);
  const found = new Map(data.items.map((use) => [use.application, use]));
  return (row) => found.get(row.application.name) ?? { state: "unknown" };
}

/** Holders lists the applications that hold access by the package, as far as the reader may see them. */
function Holders({ of }: { of: AccessPackage }) {
  const { t } = useTranslation();
  const query = usePackageHolders(of.name);
  const lastUse = useLastUses(of.name);
  const version = (row: PackageHolder) => (row.version < of.version ? t("packages.olderVersion", { version: row.version }) : row.version);
  return (
    <Section title={t("packages.holders")} testId="package-holders">
      <Loaded query={query}>
        {({ pages }) => {
          const rows = pages.flatMap(({ items }) => items);
          if (rows.length === 0) return <EmptyState>{t("packages.noHolders")}</EmptyState>;
          return (
            <>
              {pages[0]?.incomplete && <Notice>{t("packages.holdersIncomplete")}</Notice>}
              <DataTable
                query={query}
                csv={packageHoldersCSV(of.name, lastUse)}
                sortParam="holders-sort"
                label={t("packages.holders")}
                columns={[
                  { key: "application", header: t("packages.application"), cell: (row) => <RefName kind="applications" about={row.application} />, sortBy: (row) => row.application.title },
                  { key: "version", header: t("packages.version"), cell: version, sortBy: (row) => row.version },
                  { key: "items", header: t("packages.accesses"), end: true, cell: (row) => row.items, sortBy: (row) => row.items },
                  { key: "used", header: t("access.lastUsed"), nowrap: true, cell: (row) => <LastUse use={lastUse(row)} to={flowsPath({ subject: row.application })} label={t("packages.connectionsOf", { application: row.application.title })} />, sortBy: (row) => instant(lastUse(row)?.lastUsed) },
                  { key: "tickets", header: t("packages.tickets"), cell: (row) => <Tickets tickets={row.tickets} /> },
                  { key: "reason", header: t("access.reason"), cell: (row) => row.reason, sortBy: (row) => row.reason },
                  { key: "ends", header: t("packages.ends"), nowrap: true, cell: (row) => (row.expiresAt ? <RelativeTime at={row.expiresAt} /> : t("packages.untilRevoked")), sortBy: (row) => instant(row.expiresAt) },
                ]}
                rows={rows}
                rowKey={(row) => row.application.name}
                rowTestId={(row) => `holder-${row.application.id ?? row.application.name}`}
              />
            </>
          );
        }}
      </Loaded>
      <LoadMore query={query} />
    </Section>
  );
}

/** Reached says whether a version is given to existing holders, and how far that has come. */
function Reached({ update }: { update: PackageUpdate | undefined }) {
  const { t } = useTranslation();
  if (!update) return t("packages.reachNone");
  const parts = (["done", "waiting", "skipped", "failed"] as const).filter((part) => update[part] > 0).map((part) => t(`packages.reachCount.${part}`, { count: update[part] }));
  return [t(`packages.reachState.${update.state}`), ...(update.total > 0 ? [t("packages.reachTotal", { count: update.total })] : []), ...parts].join(" · ");
}

/** Update lists what becomes of each holder of the newest version that they are given. */
function Update({ of }: { of: AccessPackage }) {
  const { t } = useTranslation();
  const words = useWords();
  const version = of.versions.find(({ holders }) => holders && holders.applications.length > 0);
  if (!version?.holders) return null;
  const { applications, reason } = version.holders;
  const about = (row: PackageUpdateApplication) => (row.message ? words.message(row.message) : null);
  return (
    <Section title={t("packages.update", { version: version.number })} count={applications.length} testId="package-update">
      {reason && <Notice testId="package-update-stopped">{words.message(reason)}</Notice>}
      <DataTable
        label={t("packages.update", { version: version.number })}
        csv={packageUpdateCSV(of.name, version.number)}
        sortParam="update-sort"
        columns={[
          { key: "application", header: t("packages.application"), cell: (row) => <RefName kind="applications" about={row.application} />, sortBy: (row) => row.application.title },
          { key: "state", header: t("packages.updateState"), nowrap: true, cell: (row) => t(`packages.holderState.${row.state}`), sortBy: (row) => row.state },
          { key: "ticket", header: t("packages.ticket"), cell: (row) => row.ticket && <Link to={`/tickets/${row.ticket}`}>{row.ticket}</Link>, sortBy: (row) => row.ticket },
          { key: "message", header: t("packages.updateReason"), cell: about, sortBy: (row) => about(row) ?? undefined },
        ]}
        rows={applications}
        rowKey={(row) => row.application.name}
        rowTestId={(row) => `update-${row.application.id ?? row.application.name}`}
      />
    </Section>
  );
}

function Content({ of }: { of: AccessPackage }) {
  const { t } = useTranslation();
  const words = useWords();
  return (
    <>
      {of.archivedAt && <Notice testId="package-archived">{t("packages.archivedNote")}</Notice>}
      {of.pending && (
        <Notice testId="package-pending">
          {t("packages.pendingNote")} <Link to={`/tickets/${of.pending}`}>{of.pending}</Link>
        </Notice>
      )}
      {of.description && <Text mb="md" style={{ whiteSpace: "pre-line" }}>{of.description}</Text>}
      <Section title={t("packages.terms")} testId="package-terms">
        <p>{t("packages.publishedBy", { team: of.team.displayName, version: of.version })}</p>
        <p>{of.durationSeconds === undefined ? t("packages.noEnd") : t("packages.atMost", { duration: words.duration(of.durationSeconds) })} <Hours hours={of.hours} /></p>
        <p data-testid="package-chain">{t(`packages.chainIs.${of.chain}`, { team: of.team.displayName })}</p>
      </Section>
      <Section title={t("packages.content")} count={of.resources.length} testId="package-content">
        <DataTable
          label={t("packages.content")}
          csv={packageResourcesCSV(of.name)}
          sortParam="content-sort"
          columns={[
            { key: "resource", header: t("packages.resource"), cell: (row) => <RefName kind="resources" about={row.resource} full />, sortBy: (row) => row.resource.title },
            { key: "actions", header: t("packages.actions"), cell: (row) => <code className={tables.code}>{words.list(row.actions)}</code> },
            { key: "owners", header: t("packages.owners"), cell: (row) => <Owners owners={row.owners} /> },
          ]}
          rows={of.resources}
          rowKey={(row) => row.resource.name}
        />
      </Section>
      <Holders of={of} />
      <Update of={of} />
      <Section title={t("packages.versions")} count={of.versions.length} testId="package-versions">
        <DataTable
          label={t("packages.versions")}
          csv={packageVersionsCSV(of.name)}
          sortParam="versions-sort"
          columns={[
            { key: "number", header: t("packages.version"), cell: (row) => row.number, sortBy: (row) => row.number },
            { key: "by", header: t("packages.by"), cell: (row) => row.publishedBy.displayName, sortBy: (row) => row.publishedBy.displayName },
            { key: "at", header: t("packages.published"), nowrap: true, cell: (row) => <RelativeTime at={row.publishedAt} />, sortBy: (row) => instant(row.publishedAt) },
            { key: "holders", header: t("packages.reached"), cell: (row) => <Reached update={row.holders} /> },
            { key: "ticket", header: t("packages.ticket"), cell: (row) => row.ticket && <Link to={`/tickets/${row.ticket}`}>{row.ticket}</Link> },
            { key: "digest", header: t("packages.digest"), cell: (row) => <code className={tables.code} title={row.digest}>{row.digest.slice(0, 12)}</code> },
          ]}
          rows={of.versions}
          rowKey={(row) => String(row.number)}
          rowTestId={(row) => `version-${row.number}`}
        />
      </Section>
    </>
  );
}

/** PackagePage shows one access package: its content, who decides, who holds it, and its versions. */
export function PackagePage() {
  const { t } = useTranslation();
  const { name = "" } = useParams();
  const query = usePackage(name);
  const archive = useArchivePackage(name);
  const toast = useToast();
  const [archiving, setArchiving] = useState(false);
  const of = query.data;
  const close = () => {
    setArchiving(false);
    archive.reset();
  };
  return (
    <Page
      wide
      title={of?.title ?? name}
      sub={of && name}
      crumbs={[{ to: "/packages", label: t("packages.title") }, { label: of?.title ?? name }]}
      actions={
        of && (
          <Group gap="sm">
            {of.can.publish && (
              <>
                <Button variant="subtle" color="gray" onClick={() => setArchiving(true)} data-testid="archive-package">
                  {t("packages.archive")}
                </Button>
                <Button component={Link} to={`/requests/new?kind=package&name=${name}`} variant="default" data-testid="change-package">
                  {t("packages.change")}
                </Button>
              </>
            )}
            {of.can.request && (
              <Button component={Link} to={`/requests/new?package=${name}`} data-testid="request-package">
                {t("action.requestAccess")}
              </Button>
            )}
          </Group>
        )
      }
    >
      <Loaded query={query}>{(data) => <Content of={data} />}</Loaded>
      {archiving && (
        <ConfirmDialog
          title={t("packages.archiveTitle", { title: of?.title ?? name })}
          text={t("packages.archiveText")}
          confirm={t("packages.archive")}
          danger
          pending={archive.isPending}
          error={archive.error}
          testId="archive"
          onConfirm={() =>
            archive.mutate(undefined, {
              onSuccess: () => {
                toast(t("packages.archived"));
                close();
              },
            })
          }
          onClose={close}
        />
      )}
    </Page>
  );
}
