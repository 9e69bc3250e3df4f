import { TextInput } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { useLocation } from "react-router";
import { asApiError } from "../../api/client";
import { addressKey } from "../../lib/entered-list";
import { basketLimit, passedWorkloads, workloadAddresses, workloadBody, workloadId } from "../../lib/request";
import type { WantedWorkload } from "../../lib/request";
import { useDraft } from "../../lib/use-draft";
import { usePlan } from "../../lib/use-plan";
import { useRequest } from "../../lib/use-request";
import { useWords } from "../../lib/use-words";
import { DataTable } from "../DataTable";
import { ApplicationSelect } from "../EntitySelect";
import { Notice } from "../Feedback";
import { ListField } from "../ListField";
import tables from "../Tables.module.css";
import classes from "./Request.module.css";
import { RequestFrame } from "./RequestFrame";
import { RequestPreview } from "./RequestPreview";

interface WorkloadState {
  workloads: WantedWorkload[];
  reason: string;
}

const nothing: WantedWorkload = { application: "", id: "", addresses: [], description: "" };

function isState(value: unknown): value is WorkloadState {
  if (typeof value !== "object" || value === null) return false;
  const { workloads, reason } = value as Record<string, unknown>;
  return typeof reason === "string" && Array.isArray(workloads) && workloads.length > 0 && passedWorkloads(value).length === workloads.length;
}

/** Several lists several workloads. They come from a file and can only be changed there. */
function Several({ workloads }: { workloads: WantedWorkload[] }) {
  const { t } = useTranslation();
  const words = useWords();
  return (
    <DataTable
      label={t("request.workload.many", { count: workloads.length })}
      columns={[
        { key: "id", header: t("machines.id"), cell: (row) => <code className={tables.code}>{row.id}</code> },
        { key: "application", header: t("machines.actsAs"), cell: (row) => row.application },
        { key: "addresses", header: t("machines.addresses"), cell: (row) => <span className={tables.number}>{words.list(row.addresses)}</span> },
      ]}
      rows={workloads}
      rowKey={(row) => row.id}
    />
  );
}

/** WorkloadForm requests addresses for an application that need an approval. */
export function WorkloadForm({ person }: { person: string }) {
  const { t } = useTranslation();
  const location = useLocation();
  const passed = passedWorkloads(location.state);
  const initial = (): WorkloadState => ({ workloads: passed.length > 0 ? passed.slice(0, basketLimit) : [nothing], reason: "" });
  const { form, change, restored } = useDraft<WorkloadState>(person, initial, isState);
  const [only = nothing, ...others] = form.workloads;
  const several = others.length > 0;
  const body = workloadBody(form.workloads);
  const { query, isRequested } = usePlan(body);
  const { tried, submit, sending, error } = useRequest();
  const set = (next: Partial<WantedWorkload>) => change({ workloads: [{ ...only, ...next }] });
  const refusal = error ? asApiError(error) : undefined;

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
      atField={refusal?.itemMessage(0) !== undefined && query.data?.items[0]?.problem !== undefined}
      aside={<RequestPreview isRequested={isRequested} query={query} nameOf={(position) => form.workloads[position]?.id ?? ""} empty={t("request.workload.empty")} />}
    >
      <p className={classes.muted}>{t("request.workload.intro")}</p>
      {passed.length > basketLimit && <Notice>{t("request.workload.cut", { most: basketLimit })}</Notice>}
      {several ? (
        <Several workloads={form.workloads} />
      ) : (
        <>
          <ApplicationSelect mine label={t("machines.actsAs")} description={t("request.applicationHint")} required value={only.application} onChange={(application) => set({ application })} error={tried && only.application === "" && t("machines.error.subject")} nothingFound={t("applications.noMatch")} testId="workload-application" />
          <TextInput label={t("machines.id")} description={t("machines.idHint")} required maxLength={200} spellCheck={false} value={only.id} onChange={(event) => set({ id: event.currentTarget.value })} error={tried && !workloadId.test(only.id.trim()) && t("machines.error.id")} data-testid="workload-id" />
          <ListField label={t("machines.addresses")} description={t("machines.addressesHint")} required max={workloadAddresses} keyOf={addressKey} value={only.addresses} onChange={(addresses) => set({ addresses })} error={tried && only.addresses.length === 0 && t("machines.error.addresses")} testId="workload-addresses" />
          <TextInput label={t("machines.description")} maxLength={500} value={only.description} onChange={(event) => set({ description: event.currentTarget.value })} data-testid="workload-description" />
        </>
      )}
    </RequestFrame>
  );
}
