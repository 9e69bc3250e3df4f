import { Button, Group, SegmentedControl } from "@mantine/core";
import { IconX } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";
import type { FilterChange } from "../lib/use-filters";
import { SearchField } from "./SearchField";

interface Props {
  search: URLSearchParams;
  onChange: (change: FilterChange) => void;
  placeholder: string;
  scopeLabel: string;
}

/** CatalogFilters switches between all and the reader's own entries, and searches in them. */
export function CatalogFilters({ search, onChange, placeholder, scopeLabel }: Props) {
  const { t } = useTranslation();
  const owner = search.get("owner");
  return (
    <Group mb="md" gap="sm">
      <SegmentedControl
        size="sm"
        aria-label={scopeLabel}
        data={[
          { value: "mine", label: t("action.mine") },
          { value: "all", label: t("action.all") },
        ]}
        value={search.get("scope") === "all" ? "all" : "mine"}
        onChange={(scope) => onChange({ scope: scope === "all" ? "all" : undefined })}
      />
      <SearchField flex="1 1 200px" maw={360} label={placeholder} value={search.get("q") ?? ""} onChange={(q) => onChange({ q })} testId="catalog-search" />
      {owner && (
        <Button size="compact-sm" variant="light" rightSection={<IconX size={13} aria-hidden />} onClick={() => onChange({ owner: undefined })} title={t("requests.removeFilter")}>
          {t("action.owner", { id: owner })}
        </Button>
      )}
    </Group>
  );
}
