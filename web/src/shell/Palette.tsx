import { useDebouncedValue } from "@mantine/hooks";
import { Spotlight, spotlight } from "@mantine/spotlight";
import "@mantine/spotlight/styles.layer.css";
import { IconDatabase, IconKey, IconPlus, IconSearch } from "@tabler/icons-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useNavigate } from "react-router";
import { useApplications, useResources } from "../api/queries";
import { shortName } from "../lib/names";
import { destinations } from "./Nav";
import classes from "./Shell.module.css";

const perKind = 6;

/** Finds pages, applications and resources from anywhere; a ticket's number opens it. */
export function Palette() {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const [query, setQuery] = useState("");
  const [asked] = useDebouncedValue(query.trim(), 150);
  const wanted = asked !== "";
  const applications = useApplications({ q: asked, limit: perKind }, wanted);
  const resources = useResources({ q: asked, limit: perKind }, wanted);

  const low = query.trim().toLocaleLowerCase();
  const go = (to: string) => () => void navigate(to);
  const pages = [
    ...destinations.map(({ to, key, icon }) => ({ to, label: t(`nav.${key}`), Icon: icon })),
    { to: "/requests/new", label: t("action.newRequest"), Icon: IconPlus },
  ].filter((page) => page.label.toLocaleLowerCase().includes(low));
  const ticket = /^t-\d{1,12}$/i.test(low) ? low.toUpperCase() : undefined;
  const foundApplications = wanted ? (applications.data?.pages[0]?.items ?? []) : [];
  const foundResources = wanted ? (resources.data?.pages[0]?.items ?? []) : [];
  const searching = wanted && (applications.isFetching || resources.isFetching);
  const nothing = !ticket && !searching && query.trim() === asked && pages.length + foundApplications.length + foundResources.length === 0;

  return (
    <Spotlight.Root query={query} onQueryChange={setQuery} shortcut="mod + K" scrollable maxHeight={420} clearQueryOnClose overlayProps={{ blur: 0, backgroundOpacity: 0.5 }}>
      <Spotlight.Search placeholder={t("header.searchHint")} leftSection={<IconSearch size={18} aria-hidden />} aria-label={t("header.search")} data-testid="palette-input" />
      <Spotlight.ActionsList>
        {ticket && <Spotlight.Action label={ticket} onClick={go(`/tickets/${ticket}`)} />}
        {pages.length > 0 && (
          <Spotlight.ActionsGroup label={t("header.pages")}>
            {pages.map(({ to, label, Icon }) => (
              <Spotlight.Action key={to} label={label} leftSection={<Icon size={18} stroke={1.7} aria-hidden />} onClick={go(to)} />
            ))}
          </Spotlight.ActionsGroup>
        )}
        {foundApplications.length > 0 && (
          <Spotlight.ActionsGroup label={t("header.applications")}>
            {foundApplications.map((app) => (
              <Spotlight.Action key={app.id} label={app.title} description={shortName(app.name)} leftSection={<IconKey size={18} stroke={1.7} aria-hidden />} onClick={go(`/applications/${encodeURIComponent(app.id)}`)} />
            ))}
          </Spotlight.ActionsGroup>
        )}
        {foundResources.length > 0 && (
          <Spotlight.ActionsGroup label={t("header.resources")}>
            {foundResources.map((resource) => (
              <Spotlight.Action key={resource.id} label={resource.title} description={shortName(resource.name)} leftSection={<IconDatabase size={18} stroke={1.7} aria-hidden />} onClick={go(`/resources/${encodeURIComponent(resource.id)}`)} />
            ))}
          </Spotlight.ActionsGroup>
        )}
        {nothing && <Spotlight.Empty>{t("header.noMatch", { query: query.trim() })}</Spotlight.Empty>}
      </Spotlight.ActionsList>
    </Spotlight.Root>
  );
}

const isApple = /Mac|iPhone|iPad/.test(navigator.userAgent);

export function PaletteButton() {
  const { t } = useTranslation();
  return (
    <button type="button" className={classes.search} onClick={spotlight.open} aria-label={t("header.search")} data-testid="palette-open">
      <IconSearch size={15} aria-hidden />
      <span>{t("header.searchHint")}</span>
      <kbd aria-hidden>{isApple ? "⌘ K" : "Ctrl K"}</kbd>
    </button>
  );
}
