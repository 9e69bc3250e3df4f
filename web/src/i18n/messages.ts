/** The texts of the server's messages. Each message brings its English text, so only texts that are rendered again are needed in English. */
import { messages as english } from "./messages.en.gen";

const texts: Record<string, Readonly<Record<string, string>>> = { en: english };

/** setMessages sets the texts of a language, by the codes of the messages. */
export function setMessages(language: string, messages: Readonly<Record<string, string>>): void {
  texts[language] = messages;
}

/** messageText returns the text of a message in a language, with its parameters in braces, or undefined if the message or the language is unknown. */
export function messageText(code: string, language: string): string | undefined {
  return texts[language]?.[code];
}
