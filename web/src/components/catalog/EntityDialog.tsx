import { Select, TagsInput, TextInput, Textarea } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { usePutEntity } from "../../api/governance";
import type { Entity, Sensitivity } from "../../api/types";
import { bodyOf, entityKinds } from "../../lib/entity";
import { PersonSelect } from "../EntitySelect";
import { FormDialog } from "../FormDialog";
import { useToast } from "../toast-context";

const sensitivities: Sensitivity[] = ["low", "medium", "high"];

/** EntityDialog creates an entity of the portal's own source, or edits one. */
export function EntityDialog({ entity, onClose }: { entity: Entity | undefined; onClose: () => void }) {
  const { t } = useTranslation();
  const toast = useToast();
  const [form, setForm] = useState<Entity>(() => entity ?? { kind: "application", id: "", title: "" });
  const [tried, setTried] = useState(false);
  const put = usePutEntity();
  const change = (next: Partial<Entity>) => setForm((before) => ({ ...before, ...next }));
  const owned = form.kind === "application" || form.kind === "resource";
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
      onClose={onClose}
    >
      {(fieldError) => (
        <>
          {!entity && (
            <>
              <Select label={t("entities.kind")} allowDeselect={false} data={entityKinds.map((each) => ({ value: each, label: t(`entities.kinds.${each}`) }))} value={form.kind} onChange={(kind) => change({ kind: entityKinds.find((each) => each === kind) ?? form.kind })} data-testid="entity-kind" />
              <TextInput label={t("entities.id")} description={t("entities.idHint")} required maxLength={128} error={missing("id") || fieldError("id")} {...text("id")} />
            </>
          )}
          <TextInput label={t("entities.title")} required maxLength={200} error={missing("title") || fieldError("title")} {...text("title")} />
          <Textarea label={t("entities.description")} autosize maxLength={2_000} value={form.description ?? ""} onChange={(event) => change({ description: event.currentTarget.value })} error={fieldError("description")} />
          {owned && (
            <>
              <TextInput label={t("entities.name")} description={t("entities.nameHint")} required maxLength={512} spellCheck={false} error={missing("name") || fieldError("name")} {...text("name")} />
              <TagsInput label={t("entities.owners")} description={t("entities.ownersHint")} required maxTags={16} value={form.owners ?? []} onChange={(owners) => change({ owners })} acceptValueOnBlur error={(tried && owned && !form.owners?.length && t("entities.error.owners")) || fieldError("owners")} data-testid="entity-owners" />
              <TextInput label={t("entities.environment")} maxLength={63} error={fieldError("environment")} {...text("environment")} />
            </>
          )}
          {form.kind === "resource" && (
            <Select label={t("entities.sensitivity")} allowDeselect={false} data={sensitivities.map((each) => ({ value: each, label: t(`sensitivity.${each}`) }))} value={form.sensitivity ?? "medium"} onChange={(next) => change({ sensitivity: sensitivities.find((each) => each === next) ?? "medium" })} error={fieldError("sensitivity")} />
          )}
          {form.kind === "person" && <TextInput type="email" label={t("entities.email")} maxLength={254} error={fieldError("email")} {...text("email")} />}
          {!owned && <PersonSelect label={t(form.kind === "group" ? "entities.lead" : "entities.leader")} clearable value={form.leader ?? ""} onChange={(leader) => change({ leader })} error={fieldError("leader", "lead")} nothingFound={t("person.noMatch")} testId="entity-leader" />}
          {form.kind === "group" && (
            <>
              <TextInput label={t("entities.parent")} maxLength={128} error={fieldError("parent")} {...text("parent")} />
              <TagsInput label={t("entities.members")} description={t("entities.membersHint")} value={form.members ?? []} onChange={(members) => change({ members })} acceptValueOnBlur error={fieldError("members")} data-testid="entity-members" />
            </>
          )}
        </>
      )}
    </FormDialog>
  );
}
