import { MultiSelect, Select, TextInput, Textarea } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { usePutEntity } from "../../api/governance";
import type { Entity, Sensitivity } from "../../api/types";
import { bodyOf, entityKinds } from "../../lib/entity";
import type { KeptInput } from "../../lib/use-kept-dialog";
import { useWords } from "../../lib/use-words";
import { PersonSelect } from "../EntitySelect";
import { FormDialog } from "../FormDialog";
import type { FieldError } from "../FormDialog";
import { ListField } from "../ListField";
import { useToast } from "../toast-context";

const noNames: string[] = [];
const sensitivities: Sensitivity[] = ["low", "medium", "high"];

/** EntityLimits restrict what an administrator of an organization may enter. The server checks them again. */
export interface EntityLimits {
  kinds: Entity["kind"][];
  owners: { value: string; label: string }[];
  sensitivities: Sensitivity[];
  environments: string[];
  patterns: string[];
}

interface Props {
  entity: Entity | undefined;
  /** The values from before a login. */
  draft: Entity | undefined;
  kept: KeptInput;
  onClose: () => void;
  limits?: EntityLimits | undefined;
}

function startOf(limits: EntityLimits | undefined): Entity {
  const [kind, sensitivity, environment, owner] = [limits?.kinds[0], limits?.sensitivities[0], limits?.environments[0], limits?.owners[0]];
  return { kind: kind ?? "application", id: "", title: "", ...(sensitivity && { sensitivity }), ...(environment && { environment }), ...(owner && { owners: [owner.value] }) };
}

/** EntityDialog creates an entity of the portal's own source, or edits one. */
export function EntityDialog({ entity, draft, kept, limits, onClose }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  const toast = useToast();
  const [form, setForm] = useState<Entity>(() => draft ?? entity ?? startOf(limits));
  const [tried, setTried] = useState(false);
  const put = usePutEntity();
  const change = (next: Partial<Entity>) => setForm((before) => ({ ...before, ...next }));
  const owned = form.kind === "application" || form.kind === "resource";
  const ownersError = (fieldError: FieldError) => (tried && owned && !form.owners?.length && t("entities.error.owners")) || fieldError("owners");
  const missing = (name: "id" | "title" | "name") => tried && !form[name]?.trim() && t(`entities.error.${name}`);
  const text = (name: "id" | "title" | "name" | "environment" | "email" | "parent") => ({
    value: form[name] ?? "",
    onChange: (event: { currentTarget: { value: string } }) => change({ [name]: event.currentTarget.value }),
    "data-testid": `entity-${name}`,
  });

  const submit = () => {
    setTried(true);
    const body = bodyOf(form);
    if (body.id === "" || body.title === "" || (owned && (!body.name || !body.owners))) return false;
    put.mutate(body, {
      onSuccess: ({ title }) => {
        toast(t("entities.saved", { title }));
        onClose();
      },
    });
    return true;
  };

  return (
    <FormDialog
      title={entity ? t("entities.dialogEdit", { title: entity.title }) : t("entities.dialogNew")}
      testId="entity-form"
      submit={{ label: t("entities.save"), testId: "entity-save", onSubmit: submit }}
      pending={put.isPending}
      error={put.error}
      values={form}
      kept={kept}
      onClose={onClose}
    >
      {(fieldError) => (
        <>
          {!entity && (
            <>
              <Select label={t("entities.kind")} allowDeselect={false} data={(limits?.kinds ?? entityKinds).map((each) => ({ value: each, label: t(`entities.kinds.${each}`) }))} value={form.kind} onChange={(kind) => change({ kind: entityKinds.find((each) => each === kind) ?? form.kind })} data-testid="entity-kind" />
              <TextInput label={t("entities.id")} description={t("entities.idHint")} required maxLength={128} error={missing("id") || fieldError("id")} {...text("id")} />
            </>
          )}
          <TextInput label={t("entities.title")} required maxLength={200} error={missing("title") || fieldError("title")} {...text("title")} />
          <Textarea label={t("entities.description")} autosize maxLength={2_000} value={form.description ?? ""} onChange={(event) => change({ description: event.currentTarget.value })} error={fieldError("description")} />
          {owned && (
            <>
              <TextInput label={t("entities.name")} description={limits ? t("entities.nameWithin", { patterns: words.list(limits.patterns) }) : t("entities.nameHint")} required disabled={Boolean(limits && entity)} maxLength={512} spellCheck={false} error={missing("name") || fieldError("name")} {...text("name")} />
              {limits ? (
                <MultiSelect label={t("entities.owners")} required searchable maxValues={16} data={limits.owners} value={form.owners ?? []} onChange={(owners) => change({ owners })} error={ownersError(fieldError)} data-testid="entity-owners" />
              ) : (
                <ListField label={t("entities.owners")} description={t("entities.ownersHint")} required max={16} value={form.owners ?? noNames} onChange={(owners) => change({ owners })} error={ownersError(fieldError)} testId="entity-owners" />
              )}
              {!limits && <TextInput label={t("entities.environment")} maxLength={63} error={fieldError("environment")} {...text("environment")} />}
              {limits && limits.environments.length > 0 && (
                <Select label={t("entities.environment")} allowDeselect={false} data={limits.environments} value={form.environment ?? null} onChange={(environment) => change({ environment: environment ?? undefined })} error={fieldError("environment")} data-testid="entity-environment" />
              )}
            </>
          )}
          {form.kind === "resource" && (
            <Select label={t("entities.sensitivity")} allowDeselect={false} data={(limits?.sensitivities ?? sensitivities).map((each) => ({ value: each, label: t(`sensitivity.${each}`) }))} value={form.sensitivity ?? "medium"} onChange={(next) => change({ sensitivity: sensitivities.find((each) => each === next) ?? "medium" })} error={fieldError("sensitivity")} />
          )}
          {form.kind === "person" && <TextInput type="email" label={t("entities.email")} maxLength={254} error={fieldError("email")} {...text("email")} />}
          {!owned && <PersonSelect label={t(form.kind === "group" ? "entities.lead" : "entities.leader")} clearable value={form.leader ?? ""} onChange={(leader) => change({ leader })} error={fieldError("leader", "lead")} nothingFound={t("person.noMatch")} testId="entity-leader" />}
          {form.kind === "group" && (
            <>
              <TextInput label={t("entities.parent")} maxLength={128} error={fieldError("parent")} {...text("parent")} />
              <ListField label={t("entities.members")} description={t("entities.membersHint")} max={5_000} value={form.members ?? noNames} onChange={(members) => change({ members })} error={fieldError("members")} testId="entity-members" />
            </>
          )}
        </>
      )}
    </FormDialog>
  );
}
