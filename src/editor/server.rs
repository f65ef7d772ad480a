//! The protocol: messages in, messages out.
//!
//! In come messages of an editor; out go answers in their order, and what is wrong with each document after the last change that has come.
//! Never true here: something happens at the same time. What is told is of the newest text, since nothing older is looked at any more.

use super::outline::KINDS;
use super::{Columns, Editor};
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, Response};
use lsp_types::notification::{
    DidChangeTextDocument, DidChangeWatchedFiles, DidCloseTextDocument, DidOpenTextDocument, DidSaveTextDocument, Exit,
    Notification as _, PublishDiagnostics,
};
use lsp_types::request::{
    CodeActionRequest, Completion, DocumentSymbolRequest, FoldingRangeRequest, Formatting, GotoDefinition,
    HoverRequest, InlayHintRequest, PrepareRenameRequest, References, Rename, Request as _, SemanticTokensFullRequest,
    Shutdown, SignatureHelpRequest,
};
use lsp_types::{
    CodeActionKind, CodeActionOptions, CompletionOptions, CompletionResponse, DocumentSymbolResponse,
    GotoDefinitionResponse, HoverProviderCapability, InitializeParams, OneOf, PublishDiagnosticsParams, RenameOptions,
    SemanticTokens, SemanticTokensFullOptions, SemanticTokensLegend, SemanticTokensOptions, ServerCapabilities,
    SignatureHelpOptions, TextDocumentPositionParams, TextDocumentSyncCapability, TextDocumentSyncKind,
    TextDocumentSyncOptions, Uri, WorkDoneProgressOptions,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// So long a change waits for another, which makes its text an older one.
const PATIENCE: Duration = Duration::from_millis(1);

/// What went wrong with a session, in words.
type Broken = String;

/// Serves one editor until it says that it ends. The answer is whether it has asked for that before, as the protocol wants it.
pub fn serve(connection: &Connection) -> Result<bool, Broken> {
    let (id, params) = connection.initialize_start().map_err(|e| e.to_string())?;
    let params: InitializeParams = serde_json::from_value(params).map_err(|e| e.to_string())?;
    let general = params.capabilities.general.as_ref();
    let columns = Columns::agreed(general.and_then(|general| general.position_encodings.as_deref()));
    let answer = serde_json::json!({
        "capabilities": capabilities(columns),
        "serverInfo": { "name": "neuroc", "version": env!("CARGO_PKG_VERSION") },
    });
    connection.initialize_finish(id, answer).map_err(|e| e.to_string())?;
    let mut editor = Editor::new(columns).with_folders(&folders(&params));
    loop {
        // What is wrong is told when nothing else is to be done.
        let message = match connection.receiver.recv_timeout(PATIENCE) {
            Ok(message) => message,
            Err(_) => match editor.tell() {
                Some(told) => {
                    let (uri, diagnostics, version) = (told.uri, told.diagnostics, Some(told.version));
                    publish(connection, PublishDiagnosticsParams { uri, diagnostics, version })?;
                    continue;
                }
                None => match connection.receiver.recv() {
                    Ok(message) => message,
                    // The editor is gone.
                    Err(_) => return Ok(true),
                },
            },
        };
        match message {
            Message::Request(request) => {
                if request.method == Shutdown::METHOD {
                    let done = Response::new_ok(request.id, ());
                    connection.sender.send(done.into()).map_err(|e| e.to_string())?;
                    return ending(connection).map(|()| true);
                }
                let response = answered(&mut editor, request);
                connection.sender.send(response.into()).map_err(|e| e.to_string())?;
            }
            Message::Notification(notification) => {
                if notification.method == Exit::METHOD {
                    return Ok(false);
                }
                for uri in noted(&mut editor, notification) {
                    publish(connection, PublishDiagnosticsParams { uri, diagnostics: Vec::new(), version: None })?;
                }
            }
            Message::Response(_) => {}
        }
    }
}

/// The folders that a client has open, however it says so.
fn folders(params: &InitializeParams) -> Vec<Uri> {
    let many = params.workspace_folders.iter().flatten().map(|folder| folder.uri.clone());
    // Older clients have one, and no list.
    #[allow(deprecated)]
    let one = params.root_uri.iter().filter(|_| params.workspace_folders.is_none()).cloned();
    many.chain(one).collect()
}

/// Waits for the end, which has been asked for.
fn ending(connection: &Connection) -> Result<(), Broken> {
    for message in &connection.receiver {
        match message {
            Message::Request(request) => {
                let why = "the server has been shut down".to_string();
                let refused = Response::new_err(request.id, ErrorCode::InvalidRequest as i32, why);
                connection.sender.send(refused.into()).map_err(|e| e.to_string())?;
            }
            Message::Notification(notification) if notification.method == Exit::METHOD => break,
            Message::Notification(_) | Message::Response(_) => {}
        }
    }
    Ok(())
}

fn publish(connection: &Connection, params: PublishDiagnosticsParams) -> Result<(), Broken> {
    let message = Notification::new(PublishDiagnostics::METHOD.to_string(), params);
    connection.sender.send(message.into()).map_err(|e| e.to_string())
}

fn capabilities(columns: Columns) -> ServerCapabilities {
    let legend = SemanticTokensLegend { token_types: KINDS.to_vec(), token_modifiers: Vec::new() };
    let tokens =
        SemanticTokensOptions { legend, full: Some(SemanticTokensFullOptions::Bool(true)), ..Default::default() };
    let words = |list: &[&str]| Some(list.iter().map(|word| word.to_string()).collect::<Vec<_>>());
    ServerCapabilities {
        position_encoding: Some(columns.kind()),
        text_document_sync: Some(TextDocumentSyncCapability::Options(TextDocumentSyncOptions {
            open_close: Some(true),
            change: Some(TextDocumentSyncKind::INCREMENTAL),
            save: Some(true.into()),
            ..Default::default()
        })),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        definition_provider: Some(OneOf::Left(true)),
        references_provider: Some(OneOf::Left(true)),
        rename_provider: Some(OneOf::Right(RenameOptions {
            prepare_provider: Some(true),
            work_done_progress_options: WorkDoneProgressOptions::default(),
        })),
        completion_provider: Some(CompletionOptions {
            trigger_characters: words(&[".", ":", " "]),
            ..Default::default()
        }),
        signature_help_provider: Some(SignatureHelpOptions {
            trigger_characters: words(&["(", ","]),
            ..Default::default()
        }),
        code_action_provider: Some(
            CodeActionOptions { code_action_kinds: Some(vec![CodeActionKind::QUICKFIX]), ..Default::default() }.into(),
        ),
        document_symbol_provider: Some(OneOf::Left(true)),
        document_formatting_provider: Some(OneOf::Left(true)),
        folding_range_provider: Some(true.into()),
        inlay_hint_provider: Some(OneOf::Left(true)),
        semantic_tokens_provider: Some(tokens.into()),
        ..Default::default()
    }
}

/// Takes a notification in; gives the documents of which nothing is wrong any more.
fn noted(editor: &mut Editor, notification: Notification) -> Vec<Uri> {
    let Notification { method, params } = notification;
    match method.as_str() {
        DidOpenTextDocument::METHOD => {
            if let Some(p) = read::<lsp_types::DidOpenTextDocumentParams>(params) {
                let document = p.text_document;
                editor.open(document.uri, document.version, document.text);
            }
        }
        DidChangeTextDocument::METHOD => {
            if let Some(p) = read::<lsp_types::DidChangeTextDocumentParams>(params) {
                editor.change(&p.text_document.uri, p.text_document.version, p.content_changes);
            }
        }
        DidCloseTextDocument::METHOD => {
            if let Some(p) = read::<lsp_types::DidCloseTextDocumentParams>(params) {
                editor.close(&p.text_document.uri);
                return vec![p.text_document.uri];
            }
        }
        // Data files and shapes are no documents.
        DidSaveTextDocument::METHOD | DidChangeWatchedFiles::METHOD => editor.disk_changed(),
        _ => {}
    }
    Vec::new()
}

fn read<T: DeserializeOwned>(params: Value) -> Option<T> {
    serde_json::from_value(params).ok()
}

/// An answer, or why there is none.
enum Answer {
    Result(Value),
    Refused(String),
    NotUnderstood,
    Unknown,
}

fn answered(editor: &mut Editor, request: Request) -> Response {
    let Request { id, method, params } = request;
    // A bug of the compiler takes the answer, not the session.
    let answer = catch_unwind(AssertUnwindSafe(|| answer(editor, &method, params)));
    match answer {
        Ok(Answer::Result(value)) => Response::new_ok(id, value),
        Ok(Answer::Refused(why)) => Response::new_err(id, ErrorCode::RequestFailed as i32, why),
        Ok(Answer::NotUnderstood) => {
            Response::new_err(id, ErrorCode::InvalidParams as i32, format!("`{method}` has other parameters"))
        }
        Ok(Answer::Unknown) => {
            Response::new_err(id, ErrorCode::MethodNotFound as i32, format!("neuroc does not know `{method}`"))
        }
        Err(_) => Response::new_err(id, ErrorCode::InternalError as i32, "a bug of the compiler".to_string()),
    }
}

fn result(value: impl serde::Serialize) -> Answer {
    Answer::Result(serde_json::to_value(value).unwrap_or(Value::Null))
}

fn answer(editor: &mut Editor, method: &str, params: Value) -> Answer {
    match method {
        HoverRequest::METHOD => at(params, |p| editor.hover(&p.text_document.uri, p.position)),
        GotoDefinition::METHOD => {
            at(params, |p| editor.definition(&p.text_document.uri, p.position).map(GotoDefinitionResponse::Scalar))
        }
        References::METHOD => with(params, |p: lsp_types::ReferenceParams| {
            let TextDocumentPositionParams { text_document, position } = p.text_document_position;
            result(editor.references(&text_document.uri, position, p.context.include_declaration))
        }),
        PrepareRenameRequest::METHOD => with(params, |p: TextDocumentPositionParams| {
            editor.can_rename(&p.text_document.uri, p.position).map_or_else(Answer::Refused, result)
        }),
        Rename::METHOD => with(params, |p: lsp_types::RenameParams| {
            let TextDocumentPositionParams { text_document, position } = p.text_document_position;
            editor.rename(&text_document.uri, position, &p.new_name).map_or_else(Answer::Refused, result)
        }),
        Completion::METHOD => {
            at(params, |p| editor.complete(&p.text_document.uri, p.position).map(CompletionResponse::Array))
        }
        SignatureHelpRequest::METHOD => at(params, |p| editor.signature(&p.text_document.uri, p.position)),
        CodeActionRequest::METHOD => {
            with(params, |p: lsp_types::CodeActionParams| result(editor.actions(&p.text_document.uri, p.range)))
        }
        DocumentSymbolRequest::METHOD => with(params, |p: lsp_types::DocumentSymbolParams| {
            result(editor.symbols(&p.text_document.uri).map(DocumentSymbolResponse::Nested))
        }),
        FoldingRangeRequest::METHOD => {
            with(params, |p: lsp_types::FoldingRangeParams| result(editor.folds(&p.text_document.uri)))
        }
        Formatting::METHOD => {
            with(params, |p: lsp_types::DocumentFormattingParams| result(editor.formatted(&p.text_document.uri)))
        }
        InlayHintRequest::METHOD => {
            with(params, |p: lsp_types::InlayHintParams| result(editor.hints(&p.text_document.uri, p.range)))
        }
        SemanticTokensFullRequest::METHOD => with(params, |p: lsp_types::SemanticTokensParams| {
            let data = editor.words(&p.text_document.uri).unwrap_or_default();
            result(SemanticTokens { result_id: None, data })
        }),
        _ => Answer::Unknown,
    }
}

fn with<P: DeserializeOwned>(params: Value, f: impl FnOnce(P) -> Answer) -> Answer {
    match serde_json::from_value(params) {
        Ok(params) => f(params),
        Err(_) => Answer::NotUnderstood,
    }
}

/// A question about a position.
fn at<R: serde::Serialize>(params: Value, f: impl FnOnce(TextDocumentPositionParams) -> Option<R>) -> Answer {
    with(params, |p| result(f(p)))
}
