import { Button } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { useNavigate } from "react-router";
import { clearDraft } from "../../lib/draft";
import type { WantedWorkload } from "../../lib/request";

/** RequestWorkloadsButton opens a request for workloads that need the approval of the resource's owners. */
export function RequestWorkloadsButton({ workloads, label }: { workloads: WantedWorkload[]; label?: string }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const ask = () => {
    clearDraft(); // another workload that was typed before is another request
    void navigate("/requests/new?kind=workload", { state: { workloads } });
  };
  return (
    <Button variant="light" onClick={ask} data-testid="ask-owners">
      {label ?? t("machines.ask")}
    </Button>
  );
}
