import { Burger, Drawer, Skeleton } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { Outlet, ScrollRestoration, useLocation } from "react-router";
import { useLiveStream } from "../api/live";
import { LiveContext } from "../api/live-context";
import { useMe } from "../api/queries";
import { adoptLanguage } from "../i18n";
import { ZoneContext } from "../lib/use-zone";
import { NotificationMenu } from "./NotificationMenu";
import { Notices } from "./Notices";
import { AccountMenu, LanguageMenu, SchemeMenu } from "./Menus";
import { Brand, Nav } from "./Nav";
import { CommandPalette, CommandPaletteButton } from "./CommandPalette";
import classes from "./Shell.module.css";

/** useFocusOnNavigation moves the focus to the content after a navigation, for keyboards and screen readers. */
function useFocusOnNavigation() {
  const { pathname } = useLocation();
  const main = useRef<HTMLElement>(null);
  const last = useRef(pathname);
  useEffect(() => {
    if (last.current === pathname) return;
    last.current = pathname;
    main.current?.focus({ preventScroll: true });
  }, [pathname]);
  return main;
}

function TopBar({ onMenu, menuOpen }: { onMenu: () => void; menuOpen: boolean }) {
  const { t } = useTranslation();
  const me = useMe();
  return (
    <header className={classes.top}>
      <span className={classes.burger}>
        <Burger size="sm" opened={menuOpen} onClick={onMenu} aria-label={t("nav.open")} data-testid="nav-open" />
      </span>
      <CommandPaletteButton />
      <span className={classes.gap} />
      {me.data?.demo && <span className={classes.demo} title={t("header.demoHint")}>{t("header.demo")}</span>}
      <NotificationMenu unread={me.data?.unread ?? 0} />
      <LanguageMenu />
      <SchemeMenu />
      {me.data ? <AccountMenu me={me.data} /> : <Skeleton circle height={30} />}
    </header>
  );
}

/** Shell is the frame of all pages except the login. */
export function Shell() {
  const { t } = useTranslation();
  const me = useMe();
  const live = useLiveStream(me.data !== undefined);
  const main = useFocusOnNavigation();
  const [menuOpen, setMenuOpen] = useState(false);
  const language = me.data?.language;
  useEffect(() => {
    if (language) void adoptLanguage(language);
  }, [language]);

  return (
    <LiveContext value={live}>
      <ZoneContext value={me.data?.timeZone}>
        <a className={classes.skip} href="#main">{t("nav.skip")}</a>
        <div className={classes.shell}>
          <aside className={classes.side}>
            <Brand />
            <Nav />
          </aside>
          <Drawer opened={menuOpen} onClose={() => setMenuOpen(false)} size={264} title={<Brand />} closeButtonProps={{ "aria-label": t("nav.close") }}>
            <Nav onNavigate={() => setMenuOpen(false)} />
          </Drawer>
          <div className={classes.content}>
            <TopBar onMenu={() => setMenuOpen(true)} menuOpen={menuOpen} />
            <Notices live={live} me={me.data} />
            <main id="main" ref={main} tabIndex={-1} className={classes.main}>
              <Outlet />
            </main>
          </div>
        </div>
        <CommandPalette />
        {/* Every page that the browser itself loads has the key "default", so that an address that is entered would begin where another page was left. */}
        <ScrollRestoration getKey={({ key, pathname, search }) => (key === "default" ? pathname + search : key)} />
      </ZoneContext>
    </LiveContext>
  );
}
