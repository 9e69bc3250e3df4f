import { useTranslation } from "react-i18next";
import { useParams } from "react-router";
import { useMember } from "../api/fleet";
import { Loaded } from "../components/Feedback";
import { Health, Labels, MemberFindings, Objects, Units } from "../components/govern/MemberParts";
import { Overseers } from "../components/Overseers";
import { Page } from "../components/Page";

function Detail({ name }: { name: string }) {
  return (
    <Loaded query={useMember(name)}>
      {({ member, findings, units, unitsTotal }) => (
        <>
          <Health member={member} />
          <MemberFindings findings={findings} />
          <Units units={units} unitsTotal={unitsTotal} />
          <Objects member={member} />
          <Labels member={member} />
        </>
      )}
    </Loaded>
  );
}

/** One member: what it lacks, what is not as it should be there, and what consumes its identities. */
export function MemberPage() {
  const { t } = useTranslation();
  const { member = "" } = useParams();
  return (
    <Page wide title={member} crumbs={[{ to: "/fleet", label: t("fleet.allMembers") }, { label: member }]}>
      <Overseers>
        <Detail name={member} />
      </Overseers>
    </Page>
  );
}
