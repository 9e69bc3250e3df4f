import { Button, Radio, SegmentedControl, Stack } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQueries } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useWhatIf } from "../api/governance";
import { applicationQuery, resourceQuery, useMayRequest, useMe } from "../api/queries";
import type { Me, Mode, NewTicket } from "../api/types";
import { DurationField } from "../components/DurationField";
import { PersonSelect, ResourceSelect } from "../components/EntitySelect";
import { Loaded } from "../components/Feedback";
import { canSeeGovernance } from "../components/GovernanceOnly";
import { Page } from "../components/Page";
import { PolicyNav } from "../components/policies/PolicyNav";
import { ApplicationsField } from "../components/request/ApplicationsField";
import { Basket } from "../components/request/Basket";
import { modes } from "../components/request/ModeForm";
import classes from "../components/request/Request.module.css";
import { RequestPreview } from "../components/request/RequestPreview";
import { ResourceSearch } from "../components/request/ResourceSearch";
import { accessPairs, accessPreview, basketLimit, durationError, forPreview, modeBody, previewable, usualDuration } from "../lib/request";
import type { AccessRequest, DurationValue } from "../lib/request";

const kinds = ["grant", "onboard", "mode", "offboard"] as const;
type Kind = (typeof kinds)[number];

interface WhatIfForm {
  as: string;
  kind: Kind;
  applications: string[];
  basket: { resource: string; actions?: string[] }[];
  duration: DurationValue;
  resource: string;
  mode: Mode;
}

const pause = 200;

/** useAnswer requests the answer after typing pauses. */
function useAnswer(body: NewTicket | undefined, as: string) {
  const wanted = JSON.stringify({ body, as });
  const [settled] = useDebouncedValue(wanted, pause);
  return useWhatIf(settled === wanted ? body : undefined, as);
}

function Question({ me }: { me: Me }) {
  const { t } = useTranslation();
  const mayRequest = useMayRequest();
  const [form, setForm] = useState<WhatIfForm>({ as: "", kind: "grant", applications: [], basket: [], duration: usualDuration, resource: "", mode: "Enforce" });
  const change = (next: Partial<WhatIfForm>) => setForm((before) => ({ ...before, ...next }));
  const resources = useQueries({ queries: form.basket.map(({ resource }) => resourceQuery(resource)) });
  const rows = form.basket.map(({ resource: id, actions }, index) => {
    const query = resources[index];
    const offered = query?.data?.actions.map(({ name }) => name) ?? [];
    return { id, resource: query?.data, failed: query?.error ?? undefined, retry: () => void query?.refetch(), actions: actions ?? (offered.length === 1 ? offered : []), error: undefined };
  });
  const access: AccessRequest = { applications: form.applications, basket: rows.map(({ id, actions }) => ({ resource: id, actions })), duration: form.duration };
  const draft = form.kind === "grant" ? accessPreview(access) : modeBody({ kind: form.kind, resource: form.resource, mode: form.mode, clusterModes: {} });
  const query = useAnswer(draft && forPreview(draft), form.as);
  const applications = useQueries({ queries: form.applications.map((id) => applicationQuery(id)) });
  const asked = accessPairs(previewable(access));
  const nameOf = (position: number) => {
    const pair = asked[position];
    if (form.kind !== "grant" || !pair) return form.resource;
    const resource = rows.find(({ id }) => id === pair.resource)?.resource?.title ?? pair.resource;
    const application = applications[form.applications.indexOf(pair.application)]?.data?.title ?? pair.application;
    return form.applications.length > 1 ? t("request.preview.pair", { application, resource }) : resource;
  };
  const count = accessPairs(access).length;
  const wrong = durationError(form.duration);

  return (
    <div className={classes.layout}>
      <Stack gap="lg" role="form" aria-label={t("whatIf.title")}>
        {canSeeGovernance(me) && <PersonSelect label={t("whatIf.as")} description={t("whatIf.asHint")} clearable value={form.as} onChange={(as) => change({ as })} nothingFound={t("person.noMatch")} testId="what-if-as" />}
        <SegmentedControl aria-label={t("whatIf.kind")} data={kinds.map((kind) => ({ value: kind, label: t(`whatIf.kinds.${kind}`) }))} value={form.kind} onChange={(kind) => change({ kind: kinds.find((each) => each === kind) ?? form.kind })} data-testid="what-if-kind" />
        {form.kind === "grant" ? (
          <>
            {/* Whoever oversees may ask about every application; others only about their own. */}
            <ApplicationsField mine={!canSeeGovernance(me)} value={form.applications} onChange={(applications) => change({ applications })} nothingFound={t("applications.noMatch")} />
            <div>
              <ResourceSearch applications={form.applications} person={me.person.id} taken={rows.map(({ id }) => id)} error={count > basketLimit ? t("request.error.many", { count, most: basketLimit }) : undefined} onAdd={(resource) => change({ basket: [...form.basket, { resource }] })} />
              <Basket
                rows={rows}
                onActions={(id, actions) => change({ basket: form.basket.map((each) => (each.resource === id ? { ...each, actions } : each)) })}
                onRemove={(id) => change({ basket: form.basket.filter(({ resource }) => resource !== id) })}
              />
            </div>
            <DurationField value={form.duration} onChange={(duration) => change({ duration })} error={wrong && t("request.error.duration")} />
          </>
        ) : (
          <>
            <ResourceSelect label={t("request.resource")} required value={form.resource} onChange={(resource) => change({ resource })} nothingFound={t("request.resourceEmpty")} testId="what-if-resource" />
            {form.kind !== "offboard" && (
              <Radio.Group label={t("request.mode.label")} value={form.mode} onChange={(mode) => change({ mode: modes.find((each) => each === mode) ?? form.mode })}>
                <Stack gap={8} mt={6}>
                  {modes.map((mode) => (
                    <Radio key={mode} value={mode} label={t(`mode.${mode}`)} />
                  ))}
                </Stack>
              </Radio.Group>
            )}
          </>
        )}
        {mayRequest && form.as === "" && (
          <div>
            <Button component={Link} to={form.kind === "grant" ? `/requests/new?${new URLSearchParams([...form.applications.map((application) => ["application", application]), ...form.basket.map(({ resource }) => ["resource", resource])]).toString()}` : `/requests/new?${new URLSearchParams({ kind: form.kind, resource: form.resource }).toString()}`} variant="default">
              {t("whatIf.ask")}
            </Button>
          </div>
        )}
      </Stack>
      <RequestPreview isRequested={draft !== undefined} query={query} nameOf={nameOf} empty={t("whatIf.empty")} />
    </div>
  );
}

/** WhatIfPage shows who would have to approve a request. */
export function WhatIfPage() {
  const { t } = useTranslation();
  const me = useMe();
  return (
    <Page wide title={t("whatIf.title")} sub={t("whatIf.intro")}>
      <PolicyNav />
      <Loaded query={me}>{(data) => <Question me={data} />}</Loaded>
    </Page>
  );
}
