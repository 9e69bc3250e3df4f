import { createTheme } from "@mantine/core";
import type { CSSVariablesResolver } from "@mantine/core";

/** theme is Mantine's theme. It has one accent; every other color belongs to a decision or a state (styles/tokens.css). */
export const theme = createTheme({
  primaryColor: "accent",
  primaryShade: { light: 6, dark: 6 },
  colors: {
    accent: ["#eef3ff", "#dde6fb", "#b6c8f5", "#8caaf0", "#6f94ee", "#4c76e4", "#2f5bd7", "#2a4fbd", "#2346a9", "#1a3b94"],
    red: ["#fdecea", "#f9d5d2", "#f1aca6", "#ea8178", "#e15d52", "#d5443b", "#c0352c", "#a52a22", "#8a211b", "#701a15"],
    gray: ["#f7f8fa", "#f0f2f5", "#e5e8ed", "#d6dae1", "#b9bfca", "#8f97a5", "#636b7a", "#4a5160", "#343a46", "#1d2129"],
    dark: ["#d9dde5", "#b6bcc8", "#98a0af", "#6b7382", "#3b424f", "#2b303a", "#20242c", "#171a20", "#111318", "#0b0d10"],
  },
  fontFamily: '"Inter", system-ui, "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif',
  fontFamilyMonospace: 'ui-monospace, "SF Mono", Menlo, Consolas, "Noto Sans Mono", monospace',
  defaultRadius: "md",
  radius: { xs: "3px", sm: "5px", md: "7px", lg: "10px", xl: "16px" },
  fontSizes: { xs: "12px", sm: "13px", md: "14px", lg: "16px", xl: "19px" },
  headings: { fontWeight: "620", sizes: { h1: { fontSize: "22px", lineHeight: "1.3" }, h2: { fontSize: "15px", lineHeight: "1.4" }, h3: { fontSize: "13px", lineHeight: "1.4" } } },
  respectReducedMotion: true,
  cursorType: "pointer",
  components: {
    Button: { defaultProps: { size: "sm" } },
    InputWrapper: { styles: { description: { fontSize: 12 }, error: { fontSize: 12 } } },
    Tooltip: { defaultProps: { openDelay: 300, withArrow: false, transitionProps: { duration: 100 } } },
    Modal: { defaultProps: { centered: true, transitionProps: { duration: 120, transition: "fade" } } },
    // In a low window the content is reached by scrolling, also when the button that opened it leaves the window.
    Popover: { defaultProps: { hideDetached: false } },
    Menu: { defaultProps: { transitionProps: { duration: 100 }, shadow: "md" } },
    Skeleton: { defaultProps: { radius: "sm" } },
  },
});

/** fromTokens replaces colors of Mantine by those of tokens.css, which were chosen for contrast in both schemes. */
const fromTokens = {
  "--mantine-color-body": "var(--acp-page)",
  "--mantine-color-text": "var(--acp-text)",
  "--mantine-color-dimmed": "var(--acp-muted)",
  "--mantine-color-error": "var(--acp-bad)",
  "--mantine-color-placeholder": "var(--acp-muted)",
  "--mantine-color-default-border": "var(--acp-line-strong)",
  "--mantine-color-accent-light": "var(--acp-busy-soft)",
  "--mantine-color-accent-light-hover": "color-mix(in srgb, var(--acp-busy-soft) 80%, var(--acp-busy-solid))",
  "--mantine-color-accent-light-color": "var(--acp-busy)",
};

/** cssVariables replaces Mantine's color variables by those of styles/tokens.css. */
export const cssVariables: CSSVariablesResolver = () => ({ variables: {}, light: fromTokens, dark: fromTokens });
