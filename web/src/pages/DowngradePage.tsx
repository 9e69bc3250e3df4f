import { Button, SegmentedControl, Select } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useDowngrade, useFleet } from "../api/fleet";
import type { Scope } from "../api/fleet";
import type { Downgrade } from "../api/types";
import { ActiveDowngrades } from "../components/downgrade/ActiveDowngrades";
import { DowngradeDialog } from "../components/downgrade/DowngradeDialog";
import { DowngradeExtent } from "../components/downgrade/DowngradeExtent";
import { DowngradeProgress } from "../components/downgrade/DowngradeProgress";
import { EmptyState, Loaded, Notice, RowsSkeleton } from "../components/Feedback";
import classes from "../components/govern/Govern.module.css";
import { MemberLink } from "../components/govern/MemberParts";
import { GovernanceOnly } from "../components/GovernanceOnly";
import { Page, Section } from "../components/Page";
import tables from "../components/Tables.module.css";
import { isAuditForm } from "../lib/temporary-audit";
import { useFilters } from "../lib/use-filters";
import { useKeptDialog } from "../lib/use-kept-dialog";

function Choose({ extent, scope, onChange }: { extent: Downgrade; scope: Scope; onChange: (scope: Scope) => void }) {
  const { t } = useTranslation();
  const names = extent.classes.map(({ name }) => name);
  return (
    <div className={classes.filters} role="group" aria-label={t("downgrade.scope")}>
      <SegmentedControl
        aria-label={t("downgrade.scope")}
        data={[
          { value: "all", label: t("downgrade.scopes.all") },
          { value: "class", label: t("downgrade.scopes.class") },
        ]}
        value={scope.scope}
        onChange={(next) => onChange(next === "class" ? { scope: "class", ...(names[0] ? { class: names[0] } : {}) } : { scope: "all" })}
        data-testid="downgrade-scope"
      />
      {scope.scope === "class" && <Select aria-label={t("downgrade.class")} placeholder={t("downgrade.chooseClass")} data={names} value={scope.class ?? null} allowDeselect={false} searchable onChange={(next) => onChange({ scope: "class", ...(next ? { class: next } : {}) })} data-testid="downgrade-class" />}
    </div>
  );
}

/** Marked lists members that an operator opened without the control plane. */
function Marked() {
  const { t } = useTranslation();
  const marked = (useFleet().data?.items ?? []).filter((member) => member.downgrade || member.state === "Downgraded");
  return (
    <Section title={t("downgrade.otherDepths")}>
      <p className={tables.muted}>{t("downgrade.otherDepthsText")}</p>
      {marked.length > 0 && (
        <Notice testId="marked-members">
          {t("downgrade.marked")}: {marked.map(({ name }) => <MemberLink key={name} name={name} />)}
        </Notice>
      )}
    </Section>
  );
}

function Content() {
  const { t } = useTranslation();
  const [search, change] = useFilters();
  const { opened, draft, kept, open, close } = useKeptDialog("downgrade", isAuditForm);
  // The dialog shows what there was when it was opened. After a login, that is what there is now.
  const [opening, setOpening] = useState<Downgrade>();
  const begin = (extent: Downgrade) => {
    setOpening(extent);
    open();
  };
  const named = search.get("class") ?? "";
  const scope: Scope = search.get("scope") === "class" ? { scope: "class", ...(named ? { class: named } : {}) } : { scope: "all" };
  // Without a class nothing is requested, and the previous result stays visible.
  const query = useDowngrade(scope.scope === "class" && !scope.class ? { scope: "all" } : scope);
  return (
    <Loaded query={query}>
      {(extent) => (
        <>
          <Choose extent={extent} scope={scope} onChange={(next) => change({ scope: next.scope === "class" ? "class" : undefined, class: next.class })} />
          {query.isPlaceholderData ? (
            <RowsSkeleton />
          ) : (
            <>
              <DowngradeExtent extent={extent} />
              {extent.enforced === 0 && <EmptyState testId="nothing-enforced">{t("downgrade.nothing")}</EmptyState>}
              {extent.canAct ? (
                extent.enforced > extent.open && (
                  <Button my="md" color="red" disabled={scope.scope === "class" && !scope.class} onClick={() => begin(extent)} data-testid="downgrade-begin">
                    {t("downgrade.begin")}
                  </Button>
                )
              ) : (
                <Notice testId="look-only">{t("downgrade.lookOnly")}</Notice>
              )}
              {extent.run && <DowngradeProgress run={extent.run} />}
              <ActiveDowngrades extent={extent} />
              <Marked />
            </>
          )}
          {opened && extent.canAct && <DowngradeDialog extent={opening ?? extent} draft={draft} kept={kept} onClose={close} />}
        </>
      )}
    </Loaded>
  );
}

/** DowngradePage turns all resources, or those of a class, to Audit at once, and back. */
export function DowngradePage() {
  const { t } = useTranslation();
  return (
    <Page wide title={t("downgrade.title")} sub={t("downgrade.intro")}>
      <GovernanceOnly>
        <Content />
      </GovernanceOnly>
    </Page>
  );
}
