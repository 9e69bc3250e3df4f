import { useTranslation } from "react-i18next";
import { useParams } from "react-router";
import { useMember } from "../api/fleet";
import { Loaded } from "../components/Feedback";
import { MemberHealthDetails, MemberLabels, MemberFindings, MemberObjects, MemberUnits } from "../components/govern/MemberParts";
import { GovernanceOnly } from "../components/GovernanceOnly";
import { Page } from "../components/Page";

function Detail({ name }: { name: string }) {
  return (
    <Loaded query={useMember(name)}>
      {({ member, findings, units, unitsTotal }) => (
        <>
          <MemberHealthDetails member={member} />
          <MemberFindings findings={findings} />
          <MemberUnits units={units} unitsTotal={unitsTotal} />
          <MemberObjects member={member} />
          <MemberLabels member={member} />
        </>
      )}
    </Loaded>
  );
}

/** MemberPage shows one member: missing capabilities, findings, and what consumes its identities. */
export function MemberPage() {
  const { t } = useTranslation();
  const { member = "" } = useParams();
  return (
    <Page wide title={member} crumbs={[{ to: "/fleet", label: t("fleet.allMembers") }, { label: member }]}>
      <GovernanceOnly>
        <Detail name={member} />
      </GovernanceOnly>
    </Page>
  );
}
