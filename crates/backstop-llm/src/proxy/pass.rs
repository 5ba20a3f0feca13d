//! Requests that are no model requests: passed on as they come, once, without being held.

use super::State;
use super::call::Call;
use super::errors::api_error;
use super::route::Route;
use crate::Api;
use backstop_core::{Fault, Reason, Signal};
use backstop_http::server::{Answer, Cut, ServerRequest};
use backstop_http::{Chunk, Limits, Request, RequestBody};
use std::sync::Arc;
use std::time::Duration;

/// How long a connection may take to be made.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// Passes a request on, and its answer back.
pub(super) async fn pass_on(state: &Arc<State>, route: Route, mut request: ServerRequest) -> Answer {
    let call = Call::new(route, request.method().clone(), request.headers(), Chunk::default());
    let Ok(address) = call.route.upstream.origin.below(&call.route.target) else {
        return Answer::text(400, "the path cannot be passed on");
    };
    let length = request.announced();
    let (body, uploading) = match length {
        Some(0) => (RequestBody::empty(), None),
        _ => {
            let (sender, body) = RequestBody::stream(length);
            (body, Some(sender))
        }
    };
    let upload = async move {
        let Some(mut sender) = uploading else { return std::future::pending().await };
        loop {
            match request.chunk().await {
                Ok(Some(piece)) => {
                    if sender.send(piece).await.is_err() {
                        return std::future::pending().await;
                    }
                }
                Ok(None) => {
                    let _ = sender.finish().await;
                    return std::future::pending().await;
                }
                Err(problem) => return problem,
            }
        }
    };
    let limits = Limits { connect: CONNECT_MAX, idle: state.settings.idle, total: None };
    let sending =
        Request::new(call.method.clone(), &address).headers(call.headers.clone()).body(body).limits(limits);
    let sent = tokio::select! {
        biased;
        sent = state.client.send(sending) => sent,
        problem = upload => return Answer::text(problem.status(), &problem.to_string()),
    };
    match sent {
        Ok(mut response) => {
            let length = response.headers().length();
            let answer = Answer::new(response.status()).headers(response.headers().clone());
            let answer = answer.written(async move |writer| {
                loop {
                    match response.chunk().await {
                        Ok(Some(piece)) => writer.write(piece).await?,
                        Ok(None) => return Ok(()),
                        Err(_) => return Err(Cut),
                    }
                }
            });
            answer.length(length)
        }
        Err(error) => {
            let fault = state.classifier.classify(&Signal::from(&error));
            let fault = fault.unwrap_or_else(|| Fault::new(Reason::Unknown));
            // Nothing of it is recorded: the address and the kind of trouble are all there is.
            let words = format!("backstop: {}: {error}; {}", fault.reason, fault.suggested_action.line(300));
            let error = api_error(Api::Chat, fault.reason, words.trim_end_matches("; "));
            Answer::json(error.status, error.body.to_string().into_bytes())
        }
    }
}
