import { Group, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { usePutWorkloads } from "../../api/governance";
import { useApplication } from "../../api/queries";
import { addressKey } from "../../lib/entered-list";
import { workloadAddresses, workloadId } from "../../lib/request";
import type { KeptInput } from "../../lib/use-kept-dialog";
import { useWords } from "../../lib/use-words";
import type { WorkloadForm } from "../../lib/workload-form";
import { ApplicationSelect } from "../EntitySelect";
import { Notice } from "../Feedback";
import { FormDialog } from "../FormDialog";
import { ListField } from "../ListField";
import { useToast } from "../toast-context";
import { RequestWorkloadsButton } from "./RequestWorkloadsButton";

interface Props {
  /** Whether every application can be chosen, or only the person's own. */
  all: boolean;
  /** The values from before a login. */
  draft: WorkloadForm | undefined;
  kept: KeptInput;
  onClose: () => void;
}

/** AddWorkloadDialog registers one machine. */
export function AddWorkloadDialog({ all, draft, kept, onClose }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  const toast = useToast();
  const [id, setId] = useState(draft?.id ?? "");
  const [application, setApplication] = useState(draft?.application ?? "");
  const [addresses, setAddresses] = useState(draft?.addresses ?? []);
  const [description, setDescription] = useState(draft?.description ?? "");
  const [tried, setTried] = useState(false);
  const subject = useApplication(application).data?.name;
  const put = usePutWorkloads();
  const refused = put.data?.find(({ outcome }) => outcome === "refused");

  const submit = () => {
    setTried(true);
    if (!workloadId.test(id.trim()) || !subject || addresses.length === 0) return false;
    put.mutate([{ id: id.trim(), subject, addresses, ...(description.trim() ? { description: description.trim() } : {}) }], {
      onSuccess: (results) => {
        if (results.some(({ outcome }) => outcome === "refused")) return;
        toast(t("machines.saved", { id: id.trim() }));
        onClose();
      },
    });
    return true;
  };

  return (
    <FormDialog
      title={t("machines.add")}
      testId="workload-form"
      submit={{ label: t("machines.save"), testId: "workload-save", onSubmit: submit }}
      pending={put.isPending}
      error={put.error}
      values={{ id, application, addresses, description }}
      kept={kept}
      onClose={onClose}
    >
      {(fieldError) => (
        <>
          <TextInput label={t("machines.id")} description={t("machines.idHint")} required maxLength={200} spellCheck={false} value={id} onChange={(event) => setId(event.currentTarget.value)} error={(tried && !workloadId.test(id.trim()) && t("machines.error.id")) || fieldError("id")} data-autofocus data-testid="workload-id" />
          <ApplicationSelect mine={!all} label={t("machines.actsAs")} required value={application} onChange={setApplication} error={(tried && application === "" && t("machines.error.subject")) || fieldError("subject")} nothingFound={t("applications.noMatch")} testId="workload-application" />
          <ListField label={t("machines.addresses")} description={t("machines.addressesHint")} required max={workloadAddresses} keyOf={addressKey} value={addresses} onChange={setAddresses} error={(tried && addresses.length === 0 && t("machines.error.addresses")) || fieldError("addresses")} testId="workload-addresses" />
          <TextInput label={t("machines.description")} maxLength={500} value={description} onChange={(event) => setDescription(event.currentTarget.value)} error={fieldError("description")} data-testid="workload-description" />
          {refused && (
            <div role="alert">
              <Notice testId="workload-refused">{words.message(refused.message ?? "")}</Notice>
              {refused.needsApproval && (
                <Group mt="sm" gap="sm">
                  <RequestWorkloadsButton workloads={[{ application, id: id.trim(), addresses, description: description.trim() }]} />
                  <Text size="xs" c="dimmed">{t("machines.askHint")}</Text>
                </Group>
              )}
            </div>
          )}
        </>
      )}
    </FormDialog>
  );
}
