import { useTranslation } from "react-i18next";
import { useMe } from "../../api/queries";
import { canSeeGovernance } from "../GovernanceOnly";
import { SubNav } from "../SubNav";

/** PolicyNav links the pages of approval policies, classes, and organizations for people who may see one. */
export function PolicyNav() {
  const { t } = useTranslation();
  const me = useMe().data;
  const seesOrganizations = canSeeGovernance(me) || (me?.organizations?.length ?? 0) > 0;
  return (
    <SubNav
      label={t("governing.sections")}
      places={[
        { to: "/policies", label: t("policies.title") },
        { to: "/policies/what-if", label: t("whatIf.title") },
        { to: "/classes", label: t("classes.title") },
        ...(seesOrganizations ? [{ to: "/organizations", label: t("organizations.title") }] : []),
      ]}
    />
  );
}
