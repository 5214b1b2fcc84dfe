//! The table of agreement: for each kind and version how many cases were compared, and in how many each part is the
//! same.

use std::collections::BTreeMap;

use super::answer::Answer;
use super::compare::{AgreeingParts, Comparison};
use tollgate_api::profile::{ApiKind, Version};

/// Number of compared cases, and how many of them agree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AgreementCount {
    pub same: usize,
    pub of: usize,
}

impl AgreementCount {
    fn count_case(&mut self, same: Option<bool>) {
        if let Some(same) = same {
            self.of += 1;
            self.same += usize::from(same);
        }
    }

    /// Returns the share of equal cases as `99.93%`, rounded down, so that only complete agreement is 100%.
    pub fn percent(self) -> String {
        match (self.same, self.of) {
            (_, 0) => "-".to_owned(),
            (same, of) if same == of => "100%".to_owned(),
            (same, of) => {
                let hundredths = same * 10_000 / of;
                format!("{}.{:02}%", hundredths / 100, hundredths % 100)
            }
        }
    }
}

/// Agreement on the cases of one kind and version, or of all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AgreementRow {
    pub verdict: AgreementCount,
    pub fields: AgreementCount,
    pub texts: AgreementCount,
    /// Number of cases in which any part differs.
    pub differing: usize,
    /// Number of cases that other webhooks, policies or quotas refused.
    pub other_admission: usize,
    /// Number of cases whose version is not served.
    pub not_served: usize,
    /// Number of cases that the user is not permitted to create.
    pub not_allowed: usize,
    /// Number of cases without a verdict for another reason.
    pub failed: usize,
}

impl AgreementRow {
    /// Returns the number of cases to which the server gave no verdict.
    pub fn without_verdict(&self) -> usize {
        self.other_admission + self.not_served + self.not_allowed + self.failed
    }

    fn count_compared(&mut self, same: AgreeingParts) {
        self.verdict.count_case(Some(same.verdict));
        self.fields.count_case(same.fields);
        self.texts.count_case(same.texts);
        self.differing += usize::from(!same.all_agree());
    }

    fn count_without_verdict(&mut self, answer: &Answer) {
        match answer {
            Answer::OtherAdmission(_) => self.other_admission += 1,
            Answer::NotServed => self.not_served += 1,
            Answer::NotAllowed(_) => self.not_allowed += 1,
            _ => self.failed += 1,
        }
    }
}

/// How many verdicts of Tollgate and the API server agree, by kind and version.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Agreement {
    pub rows: BTreeMap<(ApiKind, Version), AgreementRow>,
    pub total: AgreementRow,
}

impl Agreement {
    /// Adds the comparison of one case to the counts.
    pub fn add_case(&mut self, kind: ApiKind, version: Version, answer: &Answer, comparison: Comparison) {
        for row in [self.rows.entry((kind, version)).or_default(), &mut self.total] {
            match comparison {
                Comparison::Compared(same) => row.count_compared(same),
                Comparison::NoVerdict => row.count_without_verdict(answer),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AgreeingParts, Agreement, AgreementCount, Answer, ApiKind, Comparison, Version};

    #[test]
    fn only_complete_agreement_is_100_percent() {
        let percent = |same, of| AgreementCount { same, of }.percent();
        assert_eq!(percent(0, 0), "-");
        assert_eq!(percent(7, 7), "100%");
        assert_eq!(percent(99_999, 100_000), "99.99%");
        assert_eq!(percent(1, 3), "33.33%");
        assert_eq!(percent(0, 3), "0.00%");
    }

    #[test]
    fn failures_never_count_as_agreement() {
        let mut agreement = Agreement::default();
        let mut add = |answer: Answer, comparison| {
            agreement.add_case(ApiKind::DeviceClass, Version::V1, &answer, comparison)
        };
        let same = AgreeingParts { verdict: true, fields: None, texts: Some(false) };
        add(Answer::Accepted, Comparison::Compared(same));
        add(Answer::Failed("503".to_owned()), Comparison::NoVerdict);
        add(Answer::OtherAdmission("no".to_owned()), Comparison::NoVerdict);
        add(Answer::NotServed, Comparison::NoVerdict);
        add(Answer::NotAllowed("no".to_owned()), Comparison::NoVerdict);
        let row = agreement.total;
        assert_eq!(agreement.rows[&(ApiKind::DeviceClass, Version::V1)], row);
        assert_eq!((row.verdict.of, row.verdict.same, row.differing), (1, 1, 1));
        assert_eq!((row.fields.of, row.texts.of, row.texts.same), (0, 1, 0));
        assert_eq!([row.failed, row.other_admission, row.not_served, row.not_allowed], [1; 4]);
        assert_eq!(row.without_verdict(), 4);
    }
}
