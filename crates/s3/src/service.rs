//! The operations of S3, each handed to the file that does it. What is not here, s3s answers with
//! `NotImplemented`.

use format::objects::record::metadata::Tags;
use hyper::StatusCode;
use s3s::dto::{
    AbortMultipartUploadInput, AbortMultipartUploadOutput, CompleteMultipartUploadInput,
    CompleteMultipartUploadOutput, CopyObjectInput, CopyObjectOutput, CreateBucketInput,
    CreateBucketOutput, CreateMultipartUploadInput, CreateMultipartUploadOutput,
    DeleteBucketCorsInput, DeleteBucketCorsOutput, DeleteBucketInput, DeleteBucketLifecycleInput,
    DeleteBucketLifecycleOutput, DeleteBucketOutput, DeleteBucketTaggingInput,
    DeleteBucketTaggingOutput, DeleteObjectInput, DeleteObjectOutput, DeleteObjectTaggingInput,
    DeleteObjectTaggingOutput, DeleteObjectsInput, DeleteObjectsOutput, GetBucketAclInput,
    GetBucketAclOutput, GetBucketCorsInput, GetBucketCorsOutput,
    GetBucketLifecycleConfigurationInput, GetBucketLifecycleConfigurationOutput,
    GetBucketLocationInput, GetBucketLocationOutput, GetBucketTaggingInput, GetBucketTaggingOutput,
    GetBucketVersioningInput, GetBucketVersioningOutput, GetObjectAclInput, GetObjectAclOutput,
    GetObjectAttributesInput, GetObjectAttributesOutput, GetObjectInput, GetObjectOutput,
    GetObjectTaggingInput, GetObjectTaggingOutput, HeadBucketInput, HeadBucketOutput,
    HeadObjectInput, HeadObjectOutput, ListBucketsInput, ListBucketsOutput,
    ListMultipartUploadsInput, ListMultipartUploadsOutput, ListObjectsInput, ListObjectsOutput,
    ListObjectsV2Input, ListObjectsV2Output, ListPartsInput, ListPartsOutput, PutBucketCorsInput,
    PutBucketCorsOutput, PutBucketLifecycleConfigurationInput,
    PutBucketLifecycleConfigurationOutput, PutBucketTaggingInput, PutBucketTaggingOutput,
    PutObjectInput, PutObjectOutput, PutObjectTaggingInput, PutObjectTaggingOutput,
    UploadPartCopyInput, UploadPartCopyOutput, UploadPartInput, UploadPartOutput,
};
use s3s::{S3, S3Request, S3Response, S3Result};

use crate::door::Door;
use crate::{buckets, columns, complete, copy, delete, get, listing, put, settings, tags, uploads};

fn no_content<T>(output: T) -> S3Response<T> {
    S3Response::with_status(output, StatusCode::NO_CONTENT)
}

#[async_trait::async_trait]
impl S3 for Door {
    async fn list_buckets(
        &self,
        request: S3Request<ListBucketsInput>,
    ) -> S3Result<S3Response<ListBucketsOutput>> {
        let account = self.account(request.credentials.as_ref())?;
        buckets::list(self, request.input, account).await.map(S3Response::new)
    }

    async fn head_bucket(
        &self,
        request: S3Request<HeadBucketInput>,
    ) -> S3Result<S3Response<HeadBucketOutput>> {
        buckets::head(self, request.input.bucket).await?;
        Ok(S3Response::new(HeadBucketOutput::default()))
    }

    async fn create_bucket(
        &self,
        request: S3Request<CreateBucketInput>,
    ) -> S3Result<S3Response<CreateBucketOutput>> {
        let account = self.account(request.credentials.as_ref())?;
        buckets::create(self, request.input, &account).await.map(S3Response::new)
    }

    async fn delete_bucket(
        &self,
        request: S3Request<DeleteBucketInput>,
    ) -> S3Result<S3Response<DeleteBucketOutput>> {
        buckets::delete(self, request.input.bucket).await?;
        Ok(no_content(DeleteBucketOutput::default()))
    }

    async fn get_bucket_location(
        &self,
        request: S3Request<GetBucketLocationInput>,
    ) -> S3Result<S3Response<GetBucketLocationOutput>> {
        buckets::location(self, request.input.bucket).await.map(S3Response::new)
    }

    async fn get_bucket_versioning(
        &self,
        request: S3Request<GetBucketVersioningInput>,
    ) -> S3Result<S3Response<GetBucketVersioningOutput>> {
        buckets::head(self, request.input.bucket).await?;
        Ok(S3Response::new(GetBucketVersioningOutput::default()))
    }

    async fn get_bucket_acl(
        &self,
        request: S3Request<GetBucketAclInput>,
    ) -> S3Result<S3Response<GetBucketAclOutput>> {
        let account = self.account(request.credentials.as_ref())?;
        buckets::head(self, request.input.bucket).await?;
        Ok(S3Response::new(buckets::acl(&account)))
    }

    async fn get_object_acl(
        &self,
        request: S3Request<GetObjectAclInput>,
    ) -> S3Result<S3Response<GetObjectAclOutput>> {
        let account = self.account(request.credentials.as_ref())?;
        get::info(self, request.input.bucket, request.input.key).await?;
        let GetBucketAclOutput { grants, owner } = buckets::acl(&account);
        Ok(S3Response::new(GetObjectAclOutput { grants, owner, request_charged: None }))
    }

    async fn list_objects(
        &self,
        request: S3Request<ListObjectsInput>,
    ) -> S3Result<S3Response<ListObjectsOutput>> {
        listing::list(self, request.input).await.map(S3Response::new)
    }

    async fn list_objects_v2(
        &self,
        request: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        let account = self.account(request.credentials.as_ref())?;
        let owner = buckets::owner(&account);
        listing::list_v2(self, request.input, owner).await.map(S3Response::new)
    }

    async fn put_object(
        &self,
        request: S3Request<PutObjectInput>,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        put::put(self, request).await
    }

    async fn get_object(
        &self,
        request: S3Request<GetObjectInput>,
    ) -> S3Result<S3Response<GetObjectOutput>> {
        match columns::asked(request.uri.query())? {
            Some(asked) => columns::get(self, request.input, asked).await,
            None => get::get(self, request.input).await,
        }
    }

    async fn head_object(
        &self,
        request: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        get::head(self, request.input).await
    }

    async fn get_object_attributes(
        &self,
        request: S3Request<GetObjectAttributesInput>,
    ) -> S3Result<S3Response<GetObjectAttributesOutput>> {
        get::attributes(self, request.input).await
    }

    async fn copy_object(
        &self,
        request: S3Request<CopyObjectInput>,
    ) -> S3Result<S3Response<CopyObjectOutput>> {
        copy::copy(self, request).await.map(S3Response::new)
    }

    async fn delete_object(
        &self,
        request: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        delete::delete(self, request.input).await
    }

    async fn delete_objects(
        &self,
        request: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        delete::delete_many(self, request.input).await
    }

    async fn get_object_tagging(
        &self,
        request: S3Request<GetObjectTaggingInput>,
    ) -> S3Result<S3Response<GetObjectTaggingOutput>> {
        tags::get(self, request.input).await.map(S3Response::new)
    }

    async fn put_object_tagging(
        &self,
        request: S3Request<PutObjectTaggingInput>,
    ) -> S3Result<S3Response<PutObjectTaggingOutput>> {
        tags::put(self, request.input).await?;
        Ok(S3Response::new(PutObjectTaggingOutput::default()))
    }

    async fn delete_object_tagging(
        &self,
        request: S3Request<DeleteObjectTaggingInput>,
    ) -> S3Result<S3Response<DeleteObjectTaggingOutput>> {
        let input = request.input;
        tags::set(self, input.bucket, input.key, Tags::default()).await?;
        Ok(no_content(DeleteObjectTaggingOutput::default()))
    }

    async fn create_multipart_upload(
        &self,
        request: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        uploads::begin(self, request.input).await.map(S3Response::new)
    }

    async fn upload_part(
        &self,
        request: S3Request<UploadPartInput>,
    ) -> S3Result<S3Response<UploadPartOutput>> {
        uploads::put_part(self, request).await
    }

    async fn upload_part_copy(
        &self,
        request: S3Request<UploadPartCopyInput>,
    ) -> S3Result<S3Response<UploadPartCopyOutput>> {
        uploads::copy_part(self, request).await.map(S3Response::new)
    }

    async fn complete_multipart_upload(
        &self,
        request: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        complete::complete(self, request.input).await.map(S3Response::new)
    }

    async fn abort_multipart_upload(
        &self,
        request: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        uploads::abort(self, request.input).await?;
        Ok(no_content(AbortMultipartUploadOutput::default()))
    }

    async fn list_parts(
        &self,
        request: S3Request<ListPartsInput>,
    ) -> S3Result<S3Response<ListPartsOutput>> {
        uploads::list_parts(self, request.input).await.map(S3Response::new)
    }

    async fn list_multipart_uploads(
        &self,
        request: S3Request<ListMultipartUploadsInput>,
    ) -> S3Result<S3Response<ListMultipartUploadsOutput>> {
        uploads::list(self, request.input).await.map(S3Response::new)
    }

    async fn get_bucket_tagging(
        &self,
        request: S3Request<GetBucketTaggingInput>,
    ) -> S3Result<S3Response<GetBucketTaggingOutput>> {
        let tag_set = settings::tags(self, request.input.bucket).await?;
        Ok(S3Response::new(GetBucketTaggingOutput { tag_set }))
    }

    async fn put_bucket_tagging(
        &self,
        request: S3Request<PutBucketTaggingInput>,
    ) -> S3Result<S3Response<PutBucketTaggingOutput>> {
        let input = request.input;
        settings::set_tags(self, input.bucket, input.tagging.tag_set).await?;
        Ok(S3Response::new(PutBucketTaggingOutput::default()))
    }

    async fn delete_bucket_tagging(
        &self,
        request: S3Request<DeleteBucketTaggingInput>,
    ) -> S3Result<S3Response<DeleteBucketTaggingOutput>> {
        settings::delete_tags(self, request.input.bucket).await?;
        Ok(no_content(DeleteBucketTaggingOutput::default()))
    }

    async fn get_bucket_cors(
        &self,
        request: S3Request<GetBucketCorsInput>,
    ) -> S3Result<S3Response<GetBucketCorsOutput>> {
        let cors_rules = Some(settings::cors(self, request.input.bucket).await?);
        Ok(S3Response::new(GetBucketCorsOutput { cors_rules }))
    }

    async fn put_bucket_cors(
        &self,
        request: S3Request<PutBucketCorsInput>,
    ) -> S3Result<S3Response<PutBucketCorsOutput>> {
        let input = request.input;
        settings::set_cors(self, input.bucket, input.cors_configuration.cors_rules).await?;
        Ok(S3Response::new(PutBucketCorsOutput::default()))
    }

    async fn delete_bucket_cors(
        &self,
        request: S3Request<DeleteBucketCorsInput>,
    ) -> S3Result<S3Response<DeleteBucketCorsOutput>> {
        settings::delete_cors(self, request.input.bucket).await?;
        Ok(no_content(DeleteBucketCorsOutput::default()))
    }

    async fn get_bucket_lifecycle_configuration(
        &self,
        request: S3Request<GetBucketLifecycleConfigurationInput>,
    ) -> S3Result<S3Response<GetBucketLifecycleConfigurationOutput>> {
        let rules = Some(settings::lifecycle(self, request.input.bucket).await?);
        let output = GetBucketLifecycleConfigurationOutput { rules, ..Default::default() };
        Ok(S3Response::new(output))
    }

    async fn put_bucket_lifecycle_configuration(
        &self,
        request: S3Request<PutBucketLifecycleConfigurationInput>,
    ) -> S3Result<S3Response<PutBucketLifecycleConfigurationOutput>> {
        let input = request.input;
        let rules = input.lifecycle_configuration.map(|all| all.rules).unwrap_or_default();
        settings::set_lifecycle(self, input.bucket, rules).await?;
        Ok(S3Response::new(PutBucketLifecycleConfigurationOutput::default()))
    }

    async fn delete_bucket_lifecycle(
        &self,
        request: S3Request<DeleteBucketLifecycleInput>,
    ) -> S3Result<S3Response<DeleteBucketLifecycleOutput>> {
        settings::delete_lifecycle(self, request.input.bucket).await?;
        Ok(no_content(DeleteBucketLifecycleOutput::default()))
    }
}
