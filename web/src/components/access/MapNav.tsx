import { useTranslation } from "react-i18next";
import { SubNav } from "../SubNav";

/** MapNav links the two maps: what is granted, and what was seen. */
export function MapNav() {
  const { t } = useTranslation();
  return (
    <SubNav
      label={t("governing.sections")}
      places={[
        { to: "/access", label: t("accessMap.title") },
        { to: "/traffic", label: t("traffic.title") },
      ]}
    />
  );
}
