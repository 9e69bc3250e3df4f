import { useEffect } from "react";
import type { MouseEvent, ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Outlet, useLocation } from "react-router";
import { asApiError } from "../api/client";
import { useLiveStream } from "../api/live";
import { LiveContext } from "../api/live-context";
import { useMe } from "../api/queries";
import { EmptyState } from "../components/Feedback";
import { adoptLanguage } from "../i18n";
import { EmbedContext, openLinksOutside, withoutEmbed } from "../lib/embed";
import { ZoneContext } from "../lib/use-zone";
import { Notices } from "./Notices";
import classes from "./Shell.module.css";

/** OpenInPortal links the same page in the portal itself. */
function OpenInPortal() {
  const { t } = useTranslation();
  const { pathname, search } = useLocation();
  return (
    <a href={withoutEmbed(pathname + search)} target="_blank" rel="noopener" data-testid="embed-open">
      {t("embed.open")}
    </a>
  );
}

/** OutsideEmbed is shown in place of every page that other sites cannot show. */
export function OutsideEmbed() {
  const { t } = useTranslation();
  return <EmptyState action={<OpenInPortal />} testId="embed-outside">{t("embed.outside")}</EmptyState>;
}

/** leaveToBrowser keeps the router from opening a link in the frame. */
function leaveToBrowser(event: MouseEvent) {
  const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
  if (link?.getAttribute("target") === "_blank") event.stopPropagation();
}

function Content({ children }: { children: ReactNode }) {
  // The keyboard causes clicks on links, too.
  return <main id="main" onClickCapture={leaveToBrowser}>{children}</main>;
}

/**
 * EmbedShell is the frame of the pages that other sites show: without navigation, header and command palette, and read only. The login is never
 * shown in a frame; without a session, there is a link that opens the portal in a new tab, and the page appears once the person is signed in there.
 */
export function EmbedShell() {
  const { t } = useTranslation();
  const me = useMe();
  const live = useLiveStream(me.data !== undefined);
  const signedOut = me.error !== null && asApiError(me.error).status === 401;
  const language = me.data?.language;
  useEffect(() => {
    if (language) void adoptLanguage(language);
  }, [language]);
  useEffect(openLinksOutside, []);
  return (
    <EmbedContext value>
      <LiveContext value={live}>
        <ZoneContext value={me.data?.timeZone}>
          <Content>
            {signedOut ? (
              <EmptyState action={<OpenInPortal />} testId="embed-signed-out">{t("embed.signedOut")}</EmptyState>
            ) : (
              <>
                <Notices live={live} me={me.data} />
                <p className={classes.embedOpen}><OpenInPortal /></p>
                <Outlet />
              </>
            )}
          </Content>
        </ZoneContext>
      </LiveContext>
    </EmbedContext>
  );
}
