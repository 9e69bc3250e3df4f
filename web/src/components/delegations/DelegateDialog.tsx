import { Button, Group, Modal, SimpleGrid, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { asApiError } from "../../api/client";
import { useDelegate } from "../../api/own";
import { delegationErrors } from "../../lib/delegation";
import type { DelegationForm } from "../../lib/delegation";
import { textLimit } from "../../lib/request";
import { useKey } from "../../lib/use-key";
import { useWords } from "../../lib/use-words";
import { useZone } from "../../lib/use-zone";
import { instantOf, wallTime } from "../../lib/zone";
import { PersonSelect } from "../EntitySelect";
import { ErrorState } from "../Feedback";
import { useToast } from "../toast-context";

const week = 7 * 86_400_000;

/** Names somebody who decides in one's place for some days. */
export function DelegateDialog({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation();
  const words = useWords();
  const toast = useToast();
  const zone = useZone();
  const [form, setForm] = useState<DelegationForm>(() => ({ to: "", start: wallTime(new Date(), zone), end: wallTime(new Date(Date.now() + week), zone), reason: "" }));
  const [tried, setTried] = useState(false);
  const keyOf = useKey();
  const delegate = useDelegate();

  const change = (next: Partial<DelegationForm>) => setForm((before) => ({ ...before, ...next }));
  const wrong = tried ? delegationErrors(form, zone, new Date()) : {};
  const refusal = delegate.error ? asApiError(delegate.error) : undefined;
  const field = (name: keyof DelegationForm) => {
    const [own, theirs] = [wrong[name], refusal?.fieldMessage(name)];
    return own ? t(`delegations.error.${own}`) : theirs && words.said(theirs);
  };
  const atField = (["to", "start", "end", "reason"] as const).some((name) => refusal?.fieldMessage(name));

  const submit = () => {
    setTried(true);
    const [start, end] = [instantOf(form.start, zone), instantOf(form.end, zone)];
    if (!start || !end || Object.keys(delegationErrors(form, zone, new Date())).length > 0) return;
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
  };

  return (
    <Modal opened onClose={onClose} title={<Text fw={620}>{t("delegations.dialog")}</Text>} closeButtonProps={{ "aria-label": t("action.cancel") }}>
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
        data-testid="delegate-form"
      >
        <Stack gap="md">
          <PersonSelect label={t("delegations.person")} description={t("delegations.personHint")} required value={form.to} onChange={(to) => change({ to })} error={field("to")} nothingFound={t("person.noMatch")} testId="delegate-to" />
          <div>
            <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
              <TextInput type="datetime-local" label={t("delegations.start")} required value={form.start} onChange={(event) => change({ start: event.currentTarget.value })} error={field("start")} data-testid="delegate-start" />
              <TextInput type="datetime-local" label={t("delegations.until")} required value={form.end} onChange={(event) => change({ end: event.currentTarget.value })} error={field("end")} data-testid="delegate-end" />
            </SimpleGrid>
            <Text size="xs" c="dimmed" mt={4}>{t("delegations.zone", { zone })}</Text>
          </div>
          <Textarea label={t("delegations.why")} description={t("delegations.whyHint")} required autosize minRows={2} maxLength={textLimit} value={form.reason} onChange={(event) => change({ reason: event.currentTarget.value })} error={field("reason")} data-testid="delegate-reason" />
          {refusal && !atField && <ErrorState error={refusal} title={t("error.actionTitle")} />}
          <Group justify="flex-end" gap="sm">
            <Button variant="default" onClick={onClose}>
              {t("action.cancel")}
            </Button>
            <Button type="submit" loading={delegate.isPending} data-testid="delegate-confirm">
              {t("delegations.create")}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
