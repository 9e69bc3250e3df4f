import { useTranslation } from "react-i18next";
import { SubNav } from "../SubNav";

/** CatalogNav links the pages of the catalog. */
export function CatalogNav() {
  const { t } = useTranslation();
  return (
    <SubNav
      label={t("governing.sections")}
      places={[
        { to: "/catalog", label: t("sources.tab") },
        { to: "/catalog/entities", label: t("entities.tab") },
      ]}
    />
  );
}
