import { Button } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { useSearchParams } from "react-router";
import { Notice } from "../components/Feedback";
import { localPath } from "../lib/names";
import { LanguageMenu, SchemeMenu } from "../shell/Menus";
import classes from "./LoginPage.module.css";

const known = ["denied", "expired", "invalid", "unknown-person", "provider-unavailable", "provider-unset", "not-fresh", "signed-out"] as const;

/** LoginPage links the login of the identity provider, and shows why the last login or session ended. */
export function LoginPage() {
  const { t } = useTranslation();
  const [search] = useSearchParams();
  const code = search.get("error");
  const reason = known.find((each) => each === code);
  const returnTo = localPath(search.get("returnTo"));
  // A new login that failed is tried again as one.
  const fresh = code === "not-fresh" ? "fresh=true&" : "";
  return (
    <main className={classes.page}>
      <title>{`${t("login.title")} · ACP`}</title>
      <div>
        <div className={classes.card}>
          <img src="/favicon.svg" width={40} height={40} alt="ACP" />
          <h1 className={classes.title}>{t("login.title")}</h1>
          <p className={classes.intro}>{t("login.intro")}</p>
          {code && (
            <div className={classes.message} data-testid="login-error" data-value={code}>
              <Notice live>{reason ? t(`login.error.${reason}`) : t("login.error.other", { code })}</Notice>
            </div>
          )}
          {/* The server starts the login, so this is a real link and not one of the router's. */}
          <Button component="a" href={`/auth/login?${fresh}returnTo=${encodeURIComponent(returnTo)}`} fullWidth size="md" data-testid="login-button">
            {t("login.button")}
          </Button>
        </div>
        <div className={classes.foot}>
          <LanguageMenu />
          <SchemeMenu />
        </div>
      </div>
    </main>
  );
}
