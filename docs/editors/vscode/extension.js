// The client: starts `knotwork lsp` and hands the settings of the section `knotwork` on to it. All the rest is the server's.
"use strict";

const { commands, window, workspace } = require("vscode");
const { LanguageClient, RevealOutputChannelOn } = require("vscode-languageclient/node");

const DOCUMENTS = [
  { language: "lwt" },
  { language: "gasl" },
  { scheme: "file", pattern: "**/*.seed.json" },
];

let client;

function settings() {
  const section = workspace.getConfiguration("knotwork");
  const names = ["graph", "state", "input", "models", "delay", "docs"];
  return Object.fromEntries(names.map((name) => [name, section.get(name)]));
}

async function start() {
  const [command, ...args] = workspace.getConfiguration("knotwork").get("server");
  const folder = workspace.workspaceFolders?.[0]?.uri.fsPath;
  client = new LanguageClient(
    "knotwork",
    "knotwork",
    { command, args, options: folder ? { cwd: folder } : {} },
    {
      documentSelector: DOCUMENTS,
      initializationOptions: settings(),
      synchronize: { fileEvents: workspace.createFileSystemWatcher("**/*.{json,jsonl,csv,tsv,graphml,gml,gexf,lwt}") },
      revealOutputChannelOn: RevealOutputChannelOn.Never,
    },
  );
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    const hint = "pip install 'knotwork[editor]', or say in the setting knotwork.server how it is started";
    window.showErrorMessage(`${command} can't be started: ${error.message ?? error}; ${hint}`);
  }
}

async function stop() {
  const running = client;
  client = undefined;
  if (running) {
    await running.stop();
  }
}

async function activate(context) {
  context.subscriptions.push(
    commands.registerCommand("knotwork.restart", async () => {
      await stop();
      await start();
    }),
    workspace.onDidChangeConfiguration(async (event) => {
      if (event.affectsConfiguration("knotwork.server")) {
        await stop();
        await start();
      } else if (event.affectsConfiguration("knotwork") && client) {
        await client.sendNotification("workspace/didChangeConfiguration", { settings: settings() });
      }
    }),
  );
  await start();
}

module.exports = { activate, deactivate: stop };
