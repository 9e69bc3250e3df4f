import { Group, SegmentedControl, Select, Textarea, TextInput } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { useSearchParams } from "react-router";
import { asApiError } from "../../api/client";
import { useApprovalPolicy, useOrganization, useOrganizations } from "../../api/governance";
import { useApprovalPolicies, useClasses, useMe } from "../../api/queries";
import type { ObjectChange } from "../../api/types";
import { objectBody } from "../../lib/request";
import { useDraft } from "../../lib/use-draft";
import { usePlan } from "../../lib/use-plan";
import { useRequest } from "../../lib/use-request";
import { useWords } from "../../lib/use-words";
import { Notice } from "../Feedback";
import { canManageGovernance } from "../GovernanceOnly";
import classes from "./Request.module.css";
import { RequestFrame } from "./RequestFrame";
import { RequestPreview } from "./RequestPreview";

/** ObjectTicket is the kind of a request that changes an object of the host cluster. */
export type ObjectTicket = "class" | "approval-policy";

const kinds: Record<ObjectTicket, ObjectChange["kind"][]> = { class: ["ResourceClass", "SubjectClass"], "approval-policy": ["ApprovalPolicy", "Organization"] };
const verbs: ObjectChange["verb"][] = ["create", "update", "delete"];
const specLimit = 65_536;

interface ObjectState {
  kind: ObjectChange["kind"];
  name: string;
  verb: ObjectChange["verb"];
  /** Absent until the object was edited: the form shows its current YAML. */
  spec?: string | undefined;
  reason: string;
}

function isState(value: unknown): value is ObjectState {
  if (typeof value !== "object" || value === null) return false;
  const { kind, name, verb, spec, reason } = value as Record<string, unknown>;
  return Object.values(kinds).flat().some((each) => each === kind) && typeof name === "string" && verbs.some((each) => each === verb) && (spec === undefined || typeof spec === "string") && typeof reason === "string";
}

/**
 * useObjects reads the existing objects of the kind that the person may change: those of `organizations`, or all of them if it is undefined. The lists of
 * policies and organizations have no YAML, so the YAML of the chosen object is read separately.
 */
function useObjects(ticket: ObjectTicket, kind: ObjectChange["kind"], name: string, organizations: readonly string[] | undefined): Map<string, string | undefined> | undefined {
  const isPolicy = kind === "ApprovalPolicy";
  const isOrganization = kind === "Organization";
  const classesQuery = useClasses(ticket === "class");
  const policies = useApprovalPolicies(isPolicy);
  const organizationsQuery = useOrganizations(isOrganization);
  const there = policies.data?.items.some((each) => each.name === name && !each.builtin) ?? false;
  const chosen = useApprovalPolicy(name, isPolicy && there);
  const chosenOrganization = useOrganization(name, isOrganization && (organizationsQuery.data?.items.some((each) => each.name === name) ?? false));
  const mayChange = ({ organization }: { organization?: string }) => organizations === undefined || (organization !== undefined && organizations.includes(organization));
  if (ticket === "class") return classesQuery.data && new Map(classesQuery.data.items.filter((each) => each.kind === kind && mayChange(each)).map((each) => [each.name, each.yaml]));
  if (isOrganization) return organizationsQuery.data && new Map(organizationsQuery.data.items.map((each) => [each.name, each.name === name ? chosenOrganization.data?.yaml : undefined]));
  return policies.data && new Map(policies.data.items.filter((each) => !each.builtin && mayChange(each)).map((each) => [each.name, each.name === name ? chosen.data?.yaml : undefined]));
}

/** administered are the kinds that administrators of an organization may change. */
const administered: readonly ObjectChange["kind"][] = ["ResourceClass", "ApprovalPolicy"];

/** ObjectForm requests a change of a class, an approval policy or an organization as YAML. Administrators of an organization are offered only its objects. */
export function ObjectForm({ person, ticket }: { person: string; ticket: ObjectTicket }) {
  const { t } = useTranslation();
  const words = useWords();
  const [search] = useSearchParams();
  const me = useMe().data;
  const organizations = canManageGovernance(me) || !me?.organizations?.length ? undefined : me.organizations;
  const offered = kinds[ticket].filter((each) => organizations === undefined || administered.includes(each));
  const chosenOrganization = search.get("organization") ?? (organizations?.length === 1 ? organizations[0] : undefined);
  const initial = (): ObjectState => ({
    kind: offered.find((each) => each === search.get("object")) ?? offered[0] ?? "ResourceClass",
    name: search.get("name") ?? "",
    verb: verbs.find((each) => each === search.get("verb")) ?? "update",
    reason: "",
  });
  const { form, change, restored } = useDraft<ObjectState>(person, initial, isState);
  const objects = useObjects(ticket, form.kind, form.name, organizations);
  const present = objects?.get(form.name);
  const spec = form.spec ?? (form.verb === "update" ? present : form.verb === "create" && chosenOrganization && administered.includes(form.kind) ? `organization: ${chosenOrganization}\n` : undefined) ?? "";
  const unchanged = form.verb === "update" && present !== undefined && spec.trim() === present.trim();
  const body = unchanged ? undefined : objectBody(ticket, { kind: form.kind, name: form.name.trim(), verb: form.verb, spec });
  const { query, isRequested } = usePlan(body);
  const { tried, submit, sending, error } = useRequest();

  const refusal = error ? asApiError(error) : undefined;
  const refused = refusal?.itemMessage(0) ?? query.data?.items[0]?.problem?.fields?.[0]?.message;
  const nameError = tried && form.name.trim() === "" ? t("request.error.name") : undefined;
  const specError = (tried && form.verb !== "delete" && (spec.trim() === "" ? t("request.error.spec") : unchanged ? t("request.error.unchanged") : undefined)) || (refused && words.message(refused)) || undefined;

  return (
    <RequestFrame
      restored={restored}
      reason={form.reason}
      onReason={(reason) => change({ reason })}
      tried={tried}
      reasonHint={t("request.reasonWhy")}
      onSubmit={() => submit(body, form.reason)}
      sending={sending}
      error={error}
      atField={refusal?.itemMessage(0) !== undefined}
      aside={<RequestPreview isRequested={isRequested} query={query} nameOf={() => form.name} empty={t(unchanged ? "request.object.unchanged" : "request.object.empty")} />}
    >
      {organizations && <Notice testId="object-bounds">{t("request.object.organization", { names: words.list(organizations) })}</Notice>}
      <Group gap="sm" align="flex-end">
        {offered.length > 1 && (
          <Select label={t("request.object.kind")} allowDeselect={false} data={offered.map((each) => ({ value: each, label: t(`objectKind.${each}`) }))} value={form.kind} onChange={(kind) => change({ kind: offered.find((each) => each === kind) ?? form.kind, name: "", spec: undefined })} data-testid="object-kind" />
        )}
        <SegmentedControl aria-label={t("request.object.verb")} data={verbs.map((verb) => ({ value: verb, label: t(`request.object.verbs.${verb}`) }))} value={form.verb} onChange={(verb) => change({ verb: verbs.find((each) => each === verb) ?? form.verb, spec: undefined })} data-testid="object-verb" />
      </Group>
      {form.verb === "create" ? (
        <TextInput label={t("request.object.name")} required maxLength={253} value={form.name} onChange={(event) => change({ name: event.currentTarget.value })} error={nameError} data-testid="object-name" />
      ) : (
        <Select label={t("request.object.name")} required searchable data={[...(objects?.keys() ?? [])]} value={form.name || null} onChange={(name) => change({ name: name ?? "", spec: undefined })} error={nameError} data-testid="object-name" />
      )}
      {form.verb === "delete" ? (
        <Notice>{t("request.object.deleteText")}</Notice>
      ) : (
        <Textarea className={classes.code} label={t("request.object.spec")} description={t("request.object.specHint")} required autosize minRows={10} maxRows={28} maxLength={specLimit} spellCheck={false} value={spec} onChange={(event) => change({ spec: event.currentTarget.value })} error={specError} data-testid="object-spec" />
      )}
    </RequestFrame>
  );
}
