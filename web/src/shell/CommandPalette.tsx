import { useDebouncedValue } from "@mantine/hooks";
import { Spotlight, spotlight } from "@mantine/spotlight";
import "@mantine/spotlight/styles.layer.css";
import { IconDatabase, IconDoorEnter, IconKey, IconListDetails, IconPlus, IconSearch, IconToggleLeft, IconUser, IconUsersGroup } from "@tabler/icons-react";
import type { Icon } from "@tabler/icons-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useNavigate } from "react-router";
import { useMe, useMayRequest, useSearch } from "../api/queries";
import type { SearchHit } from "../api/types";
import { requestPath } from "../components/RequestAccessLink";
import { shortName } from "../lib/names";
import { destinations, own, useGoverning } from "./destinations";
import classes from "./Shell.module.css";

type Kind = SearchHit["kind"];

/** kinds contains the kinds of results in display order, each with its path. */
const kinds: { kind: Kind; icon: Icon; path: (id: string) => string }[] = [
  { kind: "ticket", icon: IconListDetails, path: (id) => `/tickets/${id}` },
  { kind: "application", icon: IconKey, path: (id) => `/applications/${id}` },
  { kind: "resource", icon: IconDatabase, path: (id) => `/resources/${id}` },
  { kind: "person", icon: IconUser, path: (id) => `/requests?view=all&requester=${id}` },
  { kind: "group", icon: IconUsersGroup, path: (id) => `/applications?scope=all&owner=${id}` },
];

interface Place {
  to: string;
  label: string;
  Icon: Icon;
}

function usePlaces(): { pages: Place[]; actions: Place[] } {
  const { t } = useTranslation();
  const mayRequest = useMayRequest();
  const roles = useMe().data?.roles ?? [];
  const governing = useGoverning();
  const pages = [
    ...destinations.map(({ to, key, icon }) => ({ to, label: t(`nav.${key}`), Icon: icon })),
    ...[...governing, ...own].map(({ to, key, icon }) => ({ to, label: t(`governing.${key}`), Icon: icon })),
  ];
  const actions: Place[] = [];
  if (mayRequest) actions.push({ to: requestPath({}), label: t("request.titles.grant"), Icon: IconPlus });
  if (roles.includes("resource-owner") || roles.includes("security")) {
    actions.push({ to: requestPath({ kind: "onboard" }), label: t("request.titles.onboard"), Icon: IconDoorEnter }, { to: requestPath({ kind: "mode" }), label: t("request.titles.mode"), Icon: IconToggleLeft });
  }
  if (roles.includes("security")) {
    actions.push({ to: requestPath({ kind: "class" }), label: t("request.titles.class"), Icon: IconPlus }, { to: requestPath({ kind: "approval-policy" }), label: t("request.titles.approval-policy"), Icon: IconPlus });
  }
  return { pages, actions };
}

/** CommandPalette finds pages, actions, tickets, applications, resources and people. */
export function CommandPalette() {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const [query, setQuery] = useState("");
  const [asked] = useDebouncedValue(query.trim(), 150);
  const { pages, actions } = usePlaces();
  const found = useSearch(asked);

  const low = query.trim().toLocaleLowerCase();
  const go = (to: string) => () => void navigate(to);
  const fits = ({ label }: Place) => label.toLocaleLowerCase().includes(low);
  const hits = asked === "" || low === "" ? [] : (found.data?.items ?? []);
  // A ticket id opens its page even if the search found nothing; the page reports the reason.
  const number = /^t-\d{1,12}$/i.test(low) ? low.toUpperCase() : undefined;
  const ticket = hits.some((hit) => hit.kind === "ticket" && hit.id === number) ? undefined : number;
  const places = [
    { label: t("header.actions"), items: actions.filter(fits) },
    { label: t("header.pages"), items: pages.filter(fits) },
  ].filter(({ items }) => items.length > 0);
  const nothing = !ticket && !found.isFetching && query.trim() === asked && places.length === 0 && hits.length === 0;

  return (
    <Spotlight.Root query={query} onQueryChange={setQuery} shortcut="mod + K" tagsToIgnore={[]} scrollable maxHeight={460} clearQueryOnClose overlayProps={{ blur: 0, backgroundOpacity: 0.5 }} attributes={{ content: { "aria-label": t("header.search") } }}>
      <Spotlight.Search placeholder={t("header.searchHint")} leftSection={<IconSearch size={18} aria-hidden />} aria-label={t("header.search")} data-testid="palette-input" />
      <Spotlight.ActionsList>
        {ticket && <Spotlight.Action label={ticket} onClick={go(`/tickets/${ticket}`)} />}
        {kinds.map(({ kind, icon: Icon, path }) => {
          const items = hits.filter((hit) => hit.kind === kind);
          if (items.length === 0) return null;
          return (
            <Spotlight.ActionsGroup key={kind} label={t(`header.kinds.${kind}`)}>
              {items.map((hit) => (
                <Spotlight.Action
                  key={hit.id}
                  label={hit.title}
                  description={hit.subtitle ?? (hit.name ? shortName(hit.name) : undefined)}
                  leftSection={<Icon size={18} stroke={1.7} aria-hidden />}
                  onClick={go(path(encodeURIComponent(hit.id)))}
                  data-testid={`hit-${kind}-${hit.id}`}
                />
              ))}
            </Spotlight.ActionsGroup>
          );
        })}
        {places.map(({ label, items }) => (
          <Spotlight.ActionsGroup key={label} label={label}>
            {items.map(({ to, label: name, Icon }) => (
              <Spotlight.Action key={to} label={name} leftSection={<Icon size={18} stroke={1.7} aria-hidden />} onClick={go(to)} />
            ))}
          </Spotlight.ActionsGroup>
        ))}
        {nothing && <Spotlight.Empty>{t("header.noMatch", { query: query.trim() })}</Spotlight.Empty>}
      </Spotlight.ActionsList>
    </Spotlight.Root>
  );
}

const isApple = /Mac|iPhone|iPad/.test(navigator.userAgent);

/** CommandPaletteButton opens the command palette. */
export function CommandPaletteButton() {
  const { t } = useTranslation();
  return (
    <button type="button" className={classes.search} onClick={spotlight.open} aria-label={t("header.search")} data-testid="palette-open">
      <IconSearch size={15} aria-hidden />
      <span>{t("header.searchHint")}</span>
      <kbd aria-hidden>{isApple ? "⌘ K" : "Ctrl K"}</kbd>
    </button>
  );
}
