import { ActionIcon, Menu, Text, UnstyledButton, useMantineColorScheme } from "@mantine/core";
import { IconCheck, IconDeviceDesktop, IconLanguage, IconLogout, IconMoon, IconSun, IconUserCog, IconVocabulary } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { signOut } from "../api/client";
import type { Me } from "../api/types";
import badge from "../components/Badge.module.css";
import { Avatar } from "../components/Avatar";
import { useToast } from "../components/toast-context";
import { chooseLanguage, languageNames, languages, type Language } from "../i18n";
import classes from "./Shell.module.css";

/** LanguageMenu selects the language of the web UI. */
export function LanguageMenu() {
  const { t, i18n } = useTranslation();
  const toast = useToast();
  const choose = async (language: Language) => {
    if (!(await chooseLanguage(language))) toast(t("header.languageFailed"), "failed");
  };
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label={t("header.language")} data-testid="language-menu">
          <IconLanguage size={18} stroke={1.7} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {languages.map((language) => (
          <Menu.Item
            key={language}
            lang={language}
            onClick={() => void choose(language)}
            rightSection={i18n.language === language ? <IconCheck size={14} aria-hidden /> : null}
            aria-current={i18n.language === language}
            data-testid={`language-${language}`}
          >
            {languageNames[language]}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

const schemes = [
  { value: "light", key: "header.schemeLight", icon: IconSun },
  { value: "dark", key: "header.schemeDark", icon: IconMoon },
  { value: "auto", key: "header.schemeAuto", icon: IconDeviceDesktop },
] as const;

/** SchemeMenu selects the light, the dark or the system's color scheme. */
export function SchemeMenu() {
  const { t } = useTranslation();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const Current = schemes.find((scheme) => scheme.value === colorScheme)?.icon ?? IconDeviceDesktop;
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label={t("header.scheme")} data-testid="scheme-menu">
          <Current size={18} stroke={1.7} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {schemes.map(({ value, key, icon: Icon }) => (
          <Menu.Item
            key={value}
            leftSection={<Icon size={16} stroke={1.7} aria-hidden />}
            rightSection={colorScheme === value ? <IconCheck size={14} aria-hidden /> : null}
            onClick={() => setColorScheme(value)}
            aria-current={colorScheme === value}
            data-testid={`scheme-${value}`}
          >
            {t(key)}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

/** AccountMenu shows who is signed in, and links the person's pages and the logout. */
export function AccountMenu({ me }: { me: Me }) {
  const { t } = useTranslation();
  const toast = useToast();
  const leave = () =>
    signOut().then(
      (next) => window.location.assign(next),
      () => toast(t("header.signOutFailed"), "failed"),
    );
  return (
    <Menu position="bottom-end" width={260}>
      <Menu.Target>
        <UnstyledButton aria-label={t("header.account", { name: me.person.displayName })} data-testid="user-menu" data-value={me.person.id}>
          <Avatar name={me.person.displayName} size={30} />
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <div className={classes.account}>
          <small>{t("header.signedInAs")}</small>
          <Text fw={580}>{me.person.displayName}</Text>
          {me.person.email && <Text size="xs" c="dimmed">{me.person.email}</Text>}
          {me.leader && <Text size="xs" c="dimmed">{t("header.leader", { name: me.leader.displayName })}</Text>}
          <div className={classes.roles}>
            {me.roles.map((role) => (
              <span key={role} className={`${badge.badge} ${badge.idle}`}>{t(`role.${role}`)}</span>
            ))}
          </div>
        </div>
        <Menu.Divider />
        <Menu.Item component={Link} to="/profile" leftSection={<IconUserCog size={16} stroke={1.7} aria-hidden />} data-testid="open-profile">
          {t("governing.profile")}
        </Menu.Item>
        <Menu.Item component={Link} to="/terms" leftSection={<IconVocabulary size={16} stroke={1.7} aria-hidden />} data-testid="open-terms">
          {t("terms.open")}
        </Menu.Item>
        <Menu.Item
          leftSection={<IconLogout size={16} stroke={1.7} aria-hidden />}
          onClick={() => void leave()}
          data-testid="sign-out"
        >
          {t("header.signOut")}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
