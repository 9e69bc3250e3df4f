import { Button, Group, SegmentedControl } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { useDelegations } from "../api/account";
import { useMayRequest, useMe } from "../api/queries";
import { DelegateDialog } from "../components/delegations/DelegateDialog";
import { DelegationTable } from "../components/delegations/DelegationTable";
import { EmptyState, Loaded } from "../components/Feedback";
import { LoadMore } from "../components/LoadMore";
import { Page, Section } from "../components/Page";
import { isDelegationForm } from "../lib/delegation";
import { useFilters } from "../lib/use-filters";
import { useKeptDialog } from "../lib/use-kept-dialog";

/** DelegationsPage lists the person's delegations, and for the security team and auditors those of everybody. */
export function DelegationsPage() {
  const { t } = useTranslation();
  const [search, change] = useFilters();
  const me = useMe().data;
  const mayDelegate = useMayRequest();
  const { opened, draft, kept, open, close } = useKeptDialog("delegation", isDelegationForm);
  const oversees = me?.roles.some((role) => role === "security" || role === "auditor") ?? false;
  const all = oversees && search.get("scope") === "all";
  const query = useDelegations(all);

  return (
    <Page
      title={t("delegations.title")}
      sub={t("delegations.intro")}
      actions={
        mayDelegate && (
          <Button onClick={open} data-testid="new-delegation">
            {t("delegations.create")}
          </Button>
        )
      }
    >
      {oversees && (
        <Group mb="md">
          <SegmentedControl
            size="sm"
            aria-label={t("delegations.scope")}
            data={[
              { value: "mine", label: t("delegations.mine") },
              { value: "all", label: t("delegations.all") },
            ]}
            value={all ? "all" : "mine"}
            onChange={(scope) => change({ scope: scope === "all" ? scope : undefined })}
          />
        </Group>
      )}
      <Loaded query={query}>
        {(data) => {
          const rows = data.pages.flatMap((page) => page.items);
          if (all) return rows.length === 0 ? <EmptyState>{t("delegations.allEmpty")}</EmptyState> : <DelegationTable query={query} label={t("delegations.title")} rows={rows} show="both" />;
          const [given, taken] = [rows.filter((row) => row.from.id === me?.person.id), rows.filter((row) => row.to.id === me?.person.id)];
          return (
            <>
              <Section title={t("delegations.fromMe")} testId="delegations-from-me">
                {given.length === 0 ? <EmptyState>{t("delegations.fromMeEmpty")}</EmptyState> : <DelegationTable partial={query.hasNextPage} label={t("delegations.fromMe")} rows={given} show="to" />}
              </Section>
              <Section title={t("delegations.toMe")} testId="delegations-to-me">
                {taken.length === 0 ? <EmptyState>{t("delegations.toMeEmpty")}</EmptyState> : <DelegationTable partial={query.hasNextPage} label={t("delegations.toMe")} rows={taken} show="from" />}
              </Section>
            </>
          );
        }}
      </Loaded>
      <LoadMore query={query} />
      {opened && <DelegateDialog draft={draft} kept={kept} onClose={close} />}
    </Page>
  );
}
