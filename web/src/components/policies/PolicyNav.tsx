import { useTranslation } from "react-i18next";
import { SubNav } from "../SubNav";

/** PolicyNav links the pages of approval policies and classes. */
export function PolicyNav() {
  const { t } = useTranslation();
  return (
    <SubNav
      label={t("governing.sections")}
      places={[
        { to: "/policies", label: t("policies.title") },
        { to: "/policies/what-if", label: t("whatIf.title") },
        { to: "/classes", label: t("classes.title") },
      ]}
    />
  );
}
