import { SimpleGrid, Text, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useDelegate } from "../../api/account";
import { delegationErrors } from "../../lib/delegation";
import type { DelegationForm } from "../../lib/delegation";
import { textLimit } from "../../lib/request";
import type { KeptInput } from "../../lib/use-kept-dialog";
import { useKey } from "../../lib/use-key";
import { useZone } from "../../lib/use-zone";
import { instantOf, wallTime } from "../../lib/zone";
import { PersonSelect } from "../EntitySelect";
import { FormDialog } from "../FormDialog";
import { useToast } from "../toast-context";

const week = 7 * 86_400_000;

interface Props {
  /** The values from before a login. */
  draft: DelegationForm | undefined;
  kept: KeptInput;
  onClose: () => void;
}

/** DelegateDialog names a person who decides in the reader's place for some days. */
export function DelegateDialog({ draft, kept, onClose }: Props) {
  const { t } = useTranslation();
  const toast = useToast();
  const zone = useZone();
  const [form, setForm] = useState<DelegationForm>(() => draft ?? { to: "", start: wallTime(new Date(), zone), end: wallTime(new Date(Date.now() + week), zone), reason: "" });
  const [tried, setTried] = useState(false);
  const keyOf = useKey();
  const delegate = useDelegate();

  const change = (next: Partial<DelegationForm>) => setForm((before) => ({ ...before, ...next }));
  const wrong = tried ? delegationErrors(form, zone, new Date()) : {};
  const ownError = (name: keyof DelegationForm) => wrong[name] && t(`delegations.error.${wrong[name]}`);

  const submit = () => {
    setTried(true);
    const [start, end] = [instantOf(form.start, zone), instantOf(form.end, zone)];
    if (!start || !end || Object.keys(delegationErrors(form, zone, new Date())).length > 0) return false;
    const body = { to: form.to, start: start.toISOString(), end: end.toISOString(), reason: form.reason.trim() };
    delegate.mutate(
      { body, key: keyOf(body) },
      {
        onSuccess: ({ to }) => {
          toast(t("delegations.made", { name: to.displayName }));
          onClose();
        },
      },
    );
    return true;
  };

  return (
    <FormDialog
      title={t("delegations.dialog")}
      testId="delegate-form"
      submit={{ label: t("delegations.create"), testId: "delegate-confirm", onSubmit: submit }}
      pending={delegate.isPending}
      error={delegate.error}
      values={form}
      kept={kept}
      onClose={onClose}
    >
      {(fieldError) => (
        <>
          <PersonSelect label={t("delegations.person")} description={t("delegations.personHint")} required value={form.to} onChange={(to) => change({ to })} error={ownError("to") ?? fieldError("to")} nothingFound={t("person.noMatch")} testId="delegate-to" />
          <div>
            <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
              <TextInput type="datetime-local" label={t("delegations.start")} required value={form.start} onChange={(event) => change({ start: event.currentTarget.value })} error={ownError("start") ?? fieldError("start")} data-testid="delegate-start" />
              <TextInput type="datetime-local" label={t("delegations.until")} required value={form.end} onChange={(event) => change({ end: event.currentTarget.value })} error={ownError("end") ?? fieldError("end")} data-testid="delegate-end" />
            </SimpleGrid>
            <Text size="xs" c="dimmed" mt={4}>{t("delegations.zone", { zone })}</Text>
          </div>
          <Textarea label={t("delegations.why")} description={t("delegations.whyHint")} required autosize minRows={2} maxLength={textLimit} value={form.reason} onChange={(event) => change({ reason: event.currentTarget.value })} error={ownError("reason") ?? fieldError("reason")} data-testid="delegate-reason" />
        </>
      )}
    </FormDialog>
  );
}
