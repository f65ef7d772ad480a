// The client: starts `neuroc lsp` for .neuro files, and again on demand.

const { commands, workspace, window } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

function create() {
    const command = workspace.getConfiguration("neuro").get("server.path");
    const options = {
        documentSelector: [{ language: "neuro" }],
        synchronize: { fileEvents: workspace.createFileSystemWatcher("**/*.{neuro,swc,csv,npy,npz}") },
    };
    return new LanguageClient("neuro", "neuro", { command, args: ["lsp"] }, options);
}

async function start() {
    client = create();
    try {
        await client.start();
    } catch (error) {
        window.showErrorMessage(`neuroc could not be started: ${error.message}. Set neuro.server.path to the program.`);
    }
}

async function stop() {
    if (client && client.isRunning()) {
        await client.stop();
    }
    client = undefined;
}

async function activate(context) {
    context.subscriptions.push(
        commands.registerCommand("neuro.restart", async () => {
            await stop();
            await start();
        }),
    );
    await start();
}

module.exports = { activate, deactivate: stop };
