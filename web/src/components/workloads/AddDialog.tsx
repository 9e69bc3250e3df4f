import { Button, Group, Modal, Stack, TagsInput, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { asApiError } from "../../api/client";
import { usePutWorkloads } from "../../api/governance";
import { useApplication } from "../../api/queries";
import { workloadAddresses, workloadId } from "../../lib/request";
import { useWords } from "../../lib/use-words";
import { ApplicationSelect } from "../EntitySelect";
import { ErrorState, Notice } from "../Feedback";
import { useToast } from "../toast-context";
import { AskOwners } from "./AskOwners";

/** Registers one machine. */
export function AddDialog({ all, onClose }: { all: boolean; onClose: () => void }) {
  const { t } = useTranslation();
  const words = useWords();
  const toast = useToast();
  const [id, setId] = useState("");
  const [application, setApplication] = useState("");
  const [addresses, setAddresses] = useState<string[]>([]);
  const [description, setDescription] = useState("");
  const [tried, setTried] = useState(false);
  const subject = useApplication(application).data?.name;
  const put = usePutWorkloads();
  const refusal = put.error ? asApiError(put.error) : undefined;
  const refused = put.data?.find(({ outcome }) => outcome === "refused");

  const submit = () => {
    setTried(true);
    if (!workloadId.test(id.trim()) || !subject || addresses.length === 0) return;
    put.mutate([{ id: id.trim(), subject, addresses, ...(description.trim() ? { description: description.trim() } : {}) }], {
      onSuccess: (results) => {
        if (results.some(({ outcome }) => outcome === "refused")) return;
        toast(t("machines.saved", { id: id.trim() }));
        onClose();
      },
    });
  };

  return (
    <Modal opened onClose={onClose} title={<Text fw={620}>{t("machines.add")}</Text>} closeButtonProps={{ "aria-label": t("action.cancel") }}>
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
        data-testid="workload-form"
      >
        <Stack gap="md">
          <TextInput label={t("machines.id")} description={t("machines.idHint")} required maxLength={200} spellCheck={false} value={id} onChange={(event) => setId(event.currentTarget.value)} error={tried && !workloadId.test(id.trim()) && t("machines.error.id")} data-autofocus data-testid="workload-id" />
          <ApplicationSelect mine={!all} label={t("machines.actsAs")} required value={application} onChange={setApplication} error={tried && application === "" && t("machines.error.subject")} nothingFound={t("applications.noMatch")} testId="workload-application" />
          <TagsInput label={t("machines.addresses")} description={t("machines.addressesHint")} required maxTags={workloadAddresses} splitChars={[",", " ", ";"]} value={addresses} onChange={setAddresses} acceptValueOnBlur error={tried && addresses.length === 0 && t("machines.error.addresses")} data-testid="workload-addresses" />
          <TextInput label={t("machines.description")} maxLength={500} value={description} onChange={(event) => setDescription(event.currentTarget.value)} data-testid="workload-description" />
          {refused && (
            <div role="alert">
              <Notice testId="workload-refused">{words.said(refused.message ?? "")}</Notice>
              {refused.needsApproval && (
                <Group mt="sm" gap="sm">
                  <AskOwners workloads={[{ application, id: id.trim(), addresses, description: description.trim() }]} />
                  <Text size="xs" c="dimmed">{t("machines.askHint")}</Text>
                </Group>
              )}
            </div>
          )}
          {refusal && <ErrorState error={refusal} title={t("error.actionTitle")} />}
          <Group justify="flex-end" gap="sm">
            <Button variant="default" onClick={onClose}>
              {t("action.cancel")}
            </Button>
            <Button type="submit" loading={put.isPending} data-testid="workload-save">
              {t("machines.save")}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
