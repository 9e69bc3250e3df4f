import { Button } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Link, useSearchParams } from "react-router";
import { useApplications, useMe } from "../api/queries";
import { EmptyState, Loaded } from "../components/Feedback";
import { Page } from "../components/Page";
import { AccessForm } from "../components/request/AccessForm";
import { EndForm } from "../components/request/EndForm";
import { ModeForm } from "../components/request/ModeForm";
import { ObjectForm } from "../components/request/ObjectForm";
import { PackageForm } from "../components/request/PackageForm";
import { PackageRequestForm } from "../components/request/PackageRequestForm";
import { StatementForm } from "../components/request/StatementForm";
import { WorkloadForm } from "../components/request/WorkloadForm";
import { ticketKinds } from "../lib/items";

/** Access is the form for access, or an explanation for people who own no application, because access is requested for an application. */
function Access({ person }: { person: string }) {
  const { t } = useTranslation();
  const mine = useApplications({ mine: true, limit: 2 });
  return (
    <Loaded query={mine}>
      {(data) => {
        const applications = data.pages.flatMap((page) => page.items);
        if (applications.length > 0) return <AccessForm person={person} only={applications.length === 1 ? applications[0]?.id : undefined} />;
        return (
          <EmptyState
            testId="request-no-application"
            action={
              <Button component={Link} to="/applications?scope=all" variant="default">
                {t("request.allApplications")}
              </Button>
            }
          >
            {t("request.noApplication")}
          </EmptyState>
        );
      }}
    </Loaded>
  );
}

/** NewRequestPage shows the form for the kind in the URL, or what to do instead for people who cannot request access. */
export function NewRequestPage() {
  const { t } = useTranslation();
  const [search] = useSearchParams();
  const me = useMe();
  const kind = ticketKinds.find((each) => each === search.get("kind")) ?? "grant";
  const wanted = search.get("package");
  const form = (person: string) => {
    switch (kind) {
      case "mode":
      case "onboard":
      case "offboard":
        return <ModeForm key={kind} person={person} kind={kind} />;
      case "class":
      case "approval-policy":
        return <ObjectForm key={kind} person={person} ticket={kind} />;
      case "workload":
        return <WorkloadForm person={person} />;
      case "statement":
        return <StatementForm person={person} />;
      case "package":
        return <PackageForm person={person} name={search.get("name") ?? ""} />;
      case "revoke":
        return <EndForm person={person} />;
      case "grant":
      case "extend":
        return wanted ? <PackageRequestForm key={wanted} name={wanted} /> : <Access person={person} />;
    }
  };
  return (
    <Page wide title={t(`request.titles.${kind}`)} crumbs={[{ to: "/requests", label: t("requests.title") }]}>
      <Loaded query={me}>{({ person, roles }) => (roles.includes("auditor") ? <EmptyState testId="request-auditor">{t("request.auditor")}</EmptyState> : form(person.id))}</Loaded>
    </Page>
  );
}
