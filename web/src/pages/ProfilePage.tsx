import { useTranslation } from "react-i18next";
import { usePreferences } from "../api/account";
import { useMe } from "../api/queries";
import { Loaded } from "../components/Feedback";
import { Page } from "../components/Page";
import { ProfileIdentity } from "../components/profile/ProfileIdentity";
import { PreferencesForm } from "../components/profile/PreferencesForm";
import page from "../components/Page.module.css";
import { Sessions } from "../components/profile/Sessions";
import { Tokens } from "../components/profile/Tokens";

/** ProfilePage shows the person's identity, preferences, tokens and sessions. */
export function ProfilePage() {
  const { t } = useTranslation();
  const me = useMe();
  const preferences = usePreferences();
  return (
    <Page title={t("profile.title")}>
      <Loaded query={me}>{(data) => <ProfileIdentity me={data} />}</Loaded>
      <div className={page.section}>
        <Loaded query={preferences}>{(stored) => (me.data ? <PreferencesForm me={me.data} stored={stored} /> : null)}</Loaded>
      </div>
      <Tokens />
      <Sessions />
    </Page>
  );
}
