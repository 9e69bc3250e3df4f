import { Group, SegmentedControl, Select, Textarea, TextInput } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { useSearchParams } from "react-router";
import { asApiError } from "../../api/client";
import { useApprovalPolicy } from "../../api/governance";
import { useApprovalPolicies, useClasses } from "../../api/queries";
import type { ObjectChange } from "../../api/types";
import { objectBody } from "../../lib/request";
import { useDraft } from "../../lib/use-draft";
import { usePlan } from "../../lib/use-plan";
import { useRequest } from "../../lib/use-request";
import { useWords } from "../../lib/use-words";
import { Notice } from "../Feedback";
import classes from "./Request.module.css";
import { RequestFrame } from "./RequestFrame";
import { RequestPreview } from "./RequestPreview";

/** ObjectTicket is the kind of a request that changes an object of the host cluster. */
export type ObjectTicket = "class" | "approval-policy";

const kinds: Record<ObjectTicket, ObjectChange["kind"][]> = { class: ["ResourceClass", "SubjectClass"], "approval-policy": ["ApprovalPolicy"] };
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

/** useObjects reads the existing objects of the kind. The list of policies has no YAML, so the YAML of the chosen policy is read separately. */
function useObjects(ticket: ObjectTicket, kind: ObjectChange["kind"], name: string): Map<string, string | undefined> | undefined {
  const classesQuery = useClasses(ticket === "class");
  const policies = useApprovalPolicies(ticket === "approval-policy");
  const there = policies.data?.items.some((each) => each.name === name && !each.builtin) ?? false;
  const chosen = useApprovalPolicy(name, ticket === "approval-policy" && there);
  if (ticket === "class") return classesQuery.data && new Map(classesQuery.data.items.filter((each) => each.kind === kind).map((each) => [each.name, each.yaml]));
  return policies.data && new Map(policies.data.items.filter((each) => !each.builtin).map((each) => [each.name, each.name === name ? chosen.data?.yaml : undefined]));
}

/** ObjectForm requests a change of a class or of an approval policy as YAML. */
export function ObjectForm({ person, ticket }: { person: string; ticket: ObjectTicket }) {
  const { t } = useTranslation();
  const words = useWords();
  const [search] = useSearchParams();
  const offered = kinds[ticket];
  const initial = (): ObjectState => ({
    kind: offered.find((each) => each === search.get("object")) ?? offered[0] ?? "ResourceClass",
    name: search.get("name") ?? "",
    verb: verbs.find((each) => each === search.get("verb")) ?? "update",
    reason: "",
  });
  const { form, change, restored } = useDraft<ObjectState>(person, initial, isState);
  const objects = useObjects(ticket, form.kind, form.name);
  const present = objects?.get(form.name);
  const spec = form.spec ?? (form.verb === "update" ? present : undefined) ?? "";
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
