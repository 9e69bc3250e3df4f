import { Button, Group, Modal, Select, Stack, TagsInput, Text, TextInput, Textarea } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { asApiError } from "../../api/client";
import { usePutEntity } from "../../api/governance";
import type { Entity, Sensitivity } from "../../api/types";
import { bodyOf, entityKinds } from "../../lib/entity";
import { useWords } from "../../lib/use-words";
import { PersonSelect } from "../EntitySelect";
import { ErrorState } from "../Feedback";
import { useToast } from "../toast-context";

const sensitivities: Sensitivity[] = ["low", "medium", "high"];

/** An entity that is kept here: a new one, or one with what it has now. */
export function EntityDialog({ entity, onClose }: { entity: Entity | undefined; onClose: () => void }) {
  const { t } = useTranslation();
  const words = useWords();
  const toast = useToast();
  const [form, setForm] = useState<Entity>(() => entity ?? { kind: "application", id: "", title: "" });
  const [tried, setTried] = useState(false);
  const put = usePutEntity();
  const change = (next: Partial<Entity>) => setForm((before) => ({ ...before, ...next }));
  const refusal = put.error ? asApiError(put.error) : undefined;
  const owned = form.kind === "application" || form.kind === "resource";
  const fields = ["id", "title", "name", "owners", "environment", "email", "leader", "lead", "parent", "members", "description", "sensitivity"];
  const atField = fields.some((name) => refusal?.fieldMessage(name));
  const refused = (...names: string[]) => {
    const message = names.map((name) => refusal?.fieldMessage(name)).find(Boolean);
    return message && words.said(message);
  };
  const missing = (name: "id" | "title" | "name") => tried && !form[name]?.trim() && t(`entities.error.${name}`);
  const text = (name: "id" | "title" | "name" | "environment" | "email" | "parent") => ({
    value: form[name] ?? "",
    onChange: (event: { currentTarget: { value: string } }) => change({ [name]: event.currentTarget.value }),
    "data-testid": `entity-${name}`,
  });

  const submit = () => {
    setTried(true);
    const body = bodyOf(form);
    if (body.id === "" || body.title === "" || (owned && (!body.name || !body.owners))) return;
    put.mutate(body, {
      onSuccess: ({ title }) => {
        toast(t("entities.saved", { title }));
        onClose();
      },
    });
  };

  return (
    <Modal opened onClose={onClose} title={<Text fw={620}>{entity ? t("entities.dialogEdit", { title: entity.title }) : t("entities.dialogNew")}</Text>} closeButtonProps={{ "aria-label": t("action.cancel") }}>
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
        data-testid="entity-form"
      >
        <Stack gap="sm">
          {!entity && (
            <>
              <Select label={t("entities.kind")} allowDeselect={false} data={entityKinds.map((each) => ({ value: each, label: t(`entities.kinds.${each}`) }))} value={form.kind} onChange={(kind) => change({ kind: entityKinds.find((each) => each === kind) ?? form.kind })} data-testid="entity-kind" />
              <TextInput label={t("entities.id")} description={t("entities.idHint")} required maxLength={128} error={missing("id") || refused("id")} {...text("id")} />
            </>
          )}
          <TextInput label={t("entities.title")} required maxLength={200} error={missing("title") || refused("title")} {...text("title")} />
          <Textarea label={t("entities.description")} autosize maxLength={2_000} value={form.description ?? ""} onChange={(event) => change({ description: event.currentTarget.value })} error={refused("description")} />
          {owned && (
            <>
              <TextInput label={t("entities.name")} description={t("entities.nameHint")} required maxLength={512} spellCheck={false} error={missing("name") || refused("name")} {...text("name")} />
              <TagsInput label={t("entities.owners")} description={t("entities.ownersHint")} required maxTags={16} value={form.owners ?? []} onChange={(owners) => change({ owners })} acceptValueOnBlur error={(tried && owned && !form.owners?.length && t("entities.error.owners")) || refused("owners")} data-testid="entity-owners" />
              <TextInput label={t("entities.environment")} maxLength={63} error={refused("environment")} {...text("environment")} />
            </>
          )}
          {form.kind === "resource" && (
            <Select label={t("entities.sensitivity")} allowDeselect={false} data={sensitivities.map((each) => ({ value: each, label: t(`sensitivity.${each}`) }))} value={form.sensitivity ?? "medium"} onChange={(next) => change({ sensitivity: sensitivities.find((each) => each === next) ?? "medium" })} error={refused("sensitivity")} />
          )}
          {form.kind === "person" && <TextInput type="email" label={t("entities.email")} maxLength={254} error={refused("email")} {...text("email")} />}
          {!owned && <PersonSelect label={t(form.kind === "group" ? "entities.lead" : "entities.leader")} clearable value={form.leader ?? ""} onChange={(leader) => change({ leader })} error={refused("leader", "lead")} nothingFound={t("person.noMatch")} testId="entity-leader" />}
          {form.kind === "group" && (
            <>
              <TextInput label={t("entities.parent")} maxLength={128} error={refused("parent")} {...text("parent")} />
              <TagsInput label={t("entities.members")} description={t("entities.membersHint")} value={form.members ?? []} onChange={(members) => change({ members })} acceptValueOnBlur error={refused("members")} data-testid="entity-members" />
            </>
          )}
          {refusal && !atField && <ErrorState error={refusal} title={t("error.actionTitle")} />}
          <Group justify="flex-end" gap="sm">
            <Button variant="default" onClick={onClose}>
              {t("action.cancel")}
            </Button>
            <Button type="submit" loading={put.isPending} data-testid="entity-save">
              {t("entities.save")}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
