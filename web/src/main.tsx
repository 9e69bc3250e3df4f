import "./styles/tokens.css";
import "./styles/global.css";
import "@mantine/core/styles.layer.css";
import { setNonce } from "get-nonce";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App, styleNonce } from "./app";
import { startI18n } from "./i18n";

// Dialogs lock scrolling with a style element of their own, which takes its nonce from here.
const nonce = styleNonce();
if (nonce) setNonce(nonce);

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no #root");
void startI18n().then(() => {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
});
