import { Button } from "@mantine/core";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Link, useParams } from "react-router";
import { useOrganization } from "../api/governance";
import { useMayRequest, useMe } from "../api/queries";
import type { ObjectChange, Organization } from "../api/types";
import { ToneBadge } from "../components/Badge";
import { OrganizationCatalog } from "../components/catalog/OrganizationCatalog";
import { EmptyState, Loaded, Notice } from "../components/Feedback";
import { canManageGovernance } from "../components/GovernanceOnly";
import { Page, Section } from "../components/Page";
import classes from "../components/policies/Policies.module.css";
import { YamlDetails, YamlText } from "../components/policies/YamlDetails";
import { changePath } from "../lib/policies";
import { useWords } from "../lib/use-words";

function Facts({ rows }: { rows: { label: string; value: ReactNode }[] }) {
  return (
    <dl className={classes.facts}>
      {rows.map(({ label, value }) => (
        <div key={label} style={{ display: "contents" }}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Code({ values, none }: { values: readonly string[]; none: string }) {
  if (values.length === 0) return none;
  return values.map((value) => (
    <div key={value}>
      <code className={classes.code}>{value}</code>
    </div>
  ));
}

function Clusters({ bounds }: { bounds: NonNullable<Organization["classBounds"]>["clusters"] }) {
  const { t } = useTranslation();
  if (!bounds) return t("organizations.everyMember");
  return (
    <>
      <Code values={bounds.names} none="" />
      <Code values={Object.entries(bounds.matchLabels).map(([key, value]) => `${key}=${value}`)} none="" />
    </>
  );
}

function CatalogBounds({ organization: { catalogBounds: bounds } }: { organization: Organization }) {
  const { t } = useTranslation();
  const words = useWords();
  if (!bounds) return <EmptyState>{t("organizations.noCatalog")}</EmptyState>;
  return (
    <Facts
      rows={[
        { label: t("organizations.patterns"), value: <Code values={bounds.patterns} none="" /> },
        { label: t("organizations.kinds"), value: words.list(bounds.kinds.map((each) => t(`entities.kinds.${each}`))) },
        { label: t("organizations.sensitivities"), value: words.list(bounds.sensitivities.map((each) => t(`sensitivity.${each}`))) },
        { label: t("organizations.environments"), value: bounds.environments.length > 0 ? words.list(bounds.environments) : t("organizations.noEnvironment") },
      ]}
    />
  );
}

function ClassBounds({ organization: { classBounds: bounds } }: { organization: Organization }) {
  const { t } = useTranslation();
  const words = useWords();
  if (!bounds) return <EmptyState>{t("organizations.noClasses")}</EmptyState>;
  return (
    <Facts
      rows={[
        { label: t("organizations.patterns"), value: <Code values={bounds.patterns} none="" /> },
        { label: t("organizations.labelKeys"), value: <Code values={bounds.labelKeys} none="" /> },
        { label: t("organizations.enforcers"), value: words.list(bounds.enforcers) },
        { label: t("organizations.sensitivities"), value: words.list(bounds.sensitivities.map((each) => t(`sensitivity.${each}`))) },
        { label: t("organizations.actions"), value: <Code values={bounds.actions} none={t("organizations.everyAction")} /> },
        { label: t("organizations.defaultModes"), value: bounds.defaultModes.length > 0 ? words.list(bounds.defaultModes) : t("organizations.noDefaultMode") },
        { label: t("organizations.otherPorts"), value: t(bounds.allowOtherPorts ? "organizations.allowed" : "organizations.notAllowed") },
        { label: t("organizations.waves"), value: t(bounds.requireWaves ? "organizations.required" : "organizations.notRequired") },
        { label: t("organizations.clusters"), value: <Clusters bounds={bounds.clusters} /> },
      ]}
    />
  );
}

function ApprovalBounds({ organization: { approvalBounds: bounds } }: { organization: Organization }) {
  const { t } = useTranslation();
  const words = useWords();
  if (!bounds) return <EmptyState>{t("organizations.noPolicies")}</EmptyState>;
  return (
    <Facts
      rows={[
        { label: t("organizations.maxDuration"), value: bounds.maxDurationSeconds === undefined ? t("organizations.noLimit") : words.duration(bounds.maxDurationSeconds) },
        { label: t("organizations.autoApprove"), value: t(bounds.allowAutoApprove ? "organizations.allowed" : "organizations.notAllowed") },
        { label: t("organizations.replaceOwners"), value: t(bounds.allowReplaceOwners ? "organizations.allowed" : "organizations.notAllowed") },
      ]}
    />
  );
}

interface ObjectsProps {
  organization: Organization;
  kind: Extract<ObjectChange["kind"], "ResourceClass" | "ApprovalPolicy">;
  mayPropose: boolean;
}

/** Objects lists the classes or the approval policies of an organization, with links to the forms that request their change. */
function Objects({ organization, kind, mayPropose }: ObjectsProps) {
  const { t } = useTranslation();
  const words = useWords();
  const isClass = kind === "ResourceClass";
  const items = isClass ? organization.classes : organization.policies;
  const create = mayPropose && (isClass ? organization.classBounds : organization.approvalBounds) && (
    <Button component={Link} to={`${changePath(kind)}&organization=${encodeURIComponent(organization.name)}`} size="compact-sm" variant="light" data-testid={`new-${kind}`}>
      {t(isClass ? "classes.create" : "policies.create")}
    </Button>
  );
  return (
    <Section title={t(isClass ? "classes.resource" : "policies.title")} count={items.length} aside={create}>
      {items.length === 0 ? (
        <EmptyState>{t("organizations.noObjects")}</EmptyState>
      ) : (
        <ol className={classes.list}>
          {items.map(({ name, accepted, message }) => (
            <li key={name} className={classes.policy} data-testid={`object-${name}`}>
              <div className={classes.head}>
                <h3 className={classes.name}>{name}</h3>
                {!accepted && <ToneBadge tone="bad" word={t("organizations.outOfBounds")} />}
                {mayPropose && (
                  <Button component={Link} to={changePath(kind, name)} size="compact-sm" variant="default" aria-label={t("policies.proposeOf", { name })} data-testid={`propose-${name}`}>
                    {t("policies.propose")}
                  </Button>
                )}
              </div>
              {message && <p className={classes.muted}>{words.message(message)}</p>}
            </li>
          ))}
        </ol>
      )}
    </Section>
  );
}

function Details({ organization }: { organization: Organization }) {
  const { t } = useTranslation();
  const words = useWords();
  const me = useMe().data;
  const mayRequest = useMayRequest();
  const security = mayRequest && canManageGovernance(me);
  const mayPropose = security || (mayRequest && organization.mine);
  return (
    <>
      {organization.message && <Notice testId="organization-conflict">{words.message(organization.message)}</Notice>}
      <Section
        title={t("organizations.members")}
        aside={
          security && (
            <Button component={Link} to={changePath("Organization", organization.name)} size="compact-sm" variant="default" data-testid="propose-organization">
              {t("policies.propose")}
            </Button>
          )
        }
      >
        <Facts
          rows={[
            { label: t("organizations.teams"), value: words.list(organization.teams.map((team) => team.displayName)) },
            { label: t("organizations.administrators"), value: words.list(organization.administrators.map((each) => each.displayName)) },
          ]}
        />
        {organization.yaml && <YamlDetails>{() => <YamlText text={organization.yaml ?? ""} label={organization.name} />}</YamlDetails>}
      </Section>
      <Objects organization={organization} kind="ResourceClass" mayPropose={mayPropose} />
      <Objects organization={organization} kind="ApprovalPolicy" mayPropose={mayPropose} />
      <OrganizationCatalog organization={organization} security={security} mayRequest={mayRequest} />
      <Section title={t("organizations.classBounds")}>
        <ClassBounds organization={organization} />
      </Section>
      <Section title={t("organizations.approvalBounds")}>
        <p className={classes.muted}>{t("organizations.approvalBoundsText")}</p>
        <ApprovalBounds organization={organization} />
      </Section>
      <Section title={t("organizations.catalogBounds")}>
        <p className={classes.muted}>{t("organizations.catalogBoundsText")}</p>
        <CatalogBounds organization={organization} />
      </Section>
    </>
  );
}

/** OrganizationPage shows the teams, administrators, bounds, classes, approval policies and part of the catalog of one organization. */
export function OrganizationPage() {
  const { t } = useTranslation();
  const { id = "" } = useParams();
  const query = useOrganization(id);
  return (
    <Page title={query.data?.title ?? id} crumbs={[{ to: "/organizations", label: t("organizations.title") }]}>
      <Loaded query={query}>{(organization) => <Details organization={organization} />}</Loaded>
    </Page>
  );
}
