//! Functions that the answer to a request may call, and the parts of an answer.

use super::Request;
use crate::tools::Tools;

impl Request {
    /// Sets the functions that the model may call, in place of earlier ones: [`Tool`](crate::Tool)s, or [`Tools`] with a choice. The
    /// answer is then [divided](Request::divided), and a [grammar](Request::grammar) holds for an answer without calls: the
    /// answer follows it, or is a valid call.
    ///
    /// ```no_run
    /// use lapwing::{Engine, Part, Request, Tool};
    ///
    /// # async fn example(engine: Engine) -> Result<(), lapwing::Error> {
    /// let request = Request::ask("Roll a die.").tools([Tool::new("roll_a_die")]);
    /// let mut answer = engine.generate(request).await?;
    /// while let Some(token) = answer.next().await {
    ///     for part in token?.parts {
    ///         match part {
    ///             Part::Text(text) => print!("{text}"),
    ///             Part::CallEnd(call) => println!("{} with {}", call.name, call.arguments),
    ///             _ => {}
    ///         }
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn tools(self, tools: impl Into<Tools>) -> Request {
        Request { tools: Some(tools.into()), ..self }
    }

    /// Divides the answer into thoughts, text and calls: [`Token::parts`](crate::Token::parts) and
    /// [`Summary::answer`](crate::Summary::answer) have them, while [`Token::text`](crate::Token::text) stays as the model writes it.
    /// [`Thoughts::Text`](crate::Thoughts::Text) then means as [`Thoughts::First`](crate::Thoughts::First) without a limit. The answer to a
    /// text or to ids is one text.
    #[must_use]
    pub fn divided(self) -> Request {
        Request { divided: true, ..self }
    }
}
